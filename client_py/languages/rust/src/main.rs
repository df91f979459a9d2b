use arrow_array::{cast::AsArray, types::UInt8Type};
use arrow_flight::{flight_service_client::FlightServiceClient, FlightClient, Ticket};
use arrow_schema::extension::FixedShapeTensor;
use futures::TryStreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let channel = tonic::transport::Endpoint::new("http://127.0.0.1:8815")?.connect().await?;
    let service = FlightServiceClient::new(channel).max_decoding_message_size(64 << 20);
    let ticket = r#"{"op":"Sample","model":"digits","n":16,"nfe":9,"second_point":"endpoint","seed":1}"#;
    let mut stream = FlightClient::new_from_inner(service).do_get(Ticket::new(ticket)).await?;
    let (mut images, mut sum) = (0, 0);
    while let Some(batch) = stream.try_next().await? {
        // Batches without rows report progress.
        let tensor = batch.schema().field_with_name("sample")?.try_extension_type::<FixedShapeTensor>()?;
        assert_eq!(tensor.dimensions(), 3);
        let pixels = batch["sample"].as_fixed_size_list().values().as_primitive::<UInt8Type>();
        images += batch.num_rows();
        sum += pixels.values().iter().map(|&v| v as u64).sum::<u64>();
    }
    println!("{images} images, sum {sum}");
    Ok(())
}
