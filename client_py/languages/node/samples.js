import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { tableFromIPC } from "apache-arrow";

const proto = grpc.loadPackageDefinition(loader.loadSync("flight.proto", { keepCase: true }));
const options = { "grpc.max_receive_message_length": 64 << 20 };
const credentials = grpc.credentials.createInsecure();
const client = new proto.arrow.flight.protocol.FlightService("127.0.0.1:8815", credentials, options);
const ticket = { op: "Sample", model: "digits", n: 16, nfe: 9, second_point: "endpoint", seed: 1 };
const parts = []; // an Arrow IPC stream
for await (const data of client.DoGet({ ticket: Buffer.from(JSON.stringify(ticket)) })) {
  const begin = Buffer.alloc(8, 0xff);
  const pad = Buffer.alloc(-data.data_header.length & 7);
  begin.writeInt32LE(data.data_header.length + pad.length, 4);
  parts.push(begin, data.data_header, pad, data.data_body);
}
const table = tableFromIPC(Buffer.concat(parts)); // batches without rows, which report progress, add none
let sum = 0;
for (const image of table.getChild("sample")) for (const value of image) sum += value;
console.log(`${table.numRows} images, sum ${sum}`);
client.close();
