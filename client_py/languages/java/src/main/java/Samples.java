import java.io.FileInputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.arrow.flight.CallOption;
import org.apache.arrow.flight.CallOptions;
import org.apache.arrow.flight.FlightCallHeaders;
import org.apache.arrow.flight.FlightClient;
import org.apache.arrow.flight.HeaderCallOption;
import org.apache.arrow.flight.Location;
import org.apache.arrow.flight.Ticket;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.UInt1Vector;
import org.apache.arrow.vector.complex.FixedSizeListVector;

public class Samples {
  public static void main(String[] arguments) throws Exception {
    String ticket = "{\"op\":\"Sample\",\"model\":\"digits\",\"n\":16,\"nfe\":9,\"second_point\":\"endpoint\",\"seed\":1}";
    var headers = new FlightCallHeaders();
    headers.insert("authorization", "Bearer " + System.getenv("ANISOFLIGHT_TOKEN"));
    CallOption[] options = {new HeaderCallOption(headers), CallOptions.timeout(5, TimeUnit.MINUTES)};
    try (var memory = new RootAllocator();
        var authorities = new FileInputStream("server.pem");
        var client =
            FlightClient.builder(memory, Location.forGrpcTls("localhost", 8815)).trustedCertificates(authorities).build();
        var stream = client.getStream(new Ticket(ticket.getBytes(StandardCharsets.UTF_8)), options)) {
      long images = 0, sum = 0;
      while (stream.next()) { // batches without rows report progress
        var sample = (FixedSizeListVector) stream.getRoot().getVector("sample");
        var pixels = (UInt1Vector) sample.getDataVector(); // H·W·C bytes an image
        images += sample.getValueCount();
        for (int i = 0; i < sample.getValueCount() * sample.getListSize(); i++) sum += pixels.get(i) & 0xff;
      }
      System.out.println(images + " images, sum " + sum);
    }
  }
}
