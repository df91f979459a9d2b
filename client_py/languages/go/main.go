package main

import (
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	ticket := []byte(`{"op":"Sample","model":"digits","n":16,"nfe":9,"second_point":"endpoint","seed":1}`)
	client, err := flight.NewClientWithMiddleware("127.0.0.1:8815", nil, nil,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		log.Fatal(err)
	}
	stream, err := client.DoGet(context.Background(), &flight.Ticket{Ticket: ticket})
	if err != nil {
		log.Fatal(err)
	}
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		log.Fatal(err)
	}
	images, sum := 0, 0
	for reader.Next() { // batches without rows report progress
		batch := reader.RecordBatch()
		sample := batch.Column(batch.Schema().FieldIndices("sample")[0]).(*array.FixedSizeList)
		images += sample.Len()
		for _, v := range sample.ListValues().(*array.Uint8).Uint8Values() {
			sum += int(v)
		}
	}
	if err := reader.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d images, sum %d\n", images, sum)
}
