import java.nio.charset.StandardCharsets;
import org.apache.arrow.flight.FlightClient;
import org.apache.arrow.flight.Location;
import org.apache.arrow.flight.Ticket;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.UInt1Vector;
import org.apache.arrow.vector.complex.FixedSizeListVector;

public class Samples {
  public static void main(String[] arguments) throws Exception {
    String ticket = "{\"op\":\"Sample\",\"model\":\"digits\",\"n\":16,\"nfe\":9,\"second_point\":\"endpoint\",\"seed\":1}";
    try (var memory = new RootAllocator();
        var client = FlightClient.builder(memory, Location.forGrpcInsecure("127.0.0.1", 8815)).build();
        var stream = client.getStream(new Ticket(ticket.getBytes(StandardCharsets.UTF_8)))) {
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
