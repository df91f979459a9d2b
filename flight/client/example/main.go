// Command example draws images from a model of a running server and writes them as PNG files:
//
//	go run ./flight/client/example -model digits -n 16 -out samples
package main

import (
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
)

func main() {
	location := flag.String("location", "grpc://127.0.0.1:8815", "the server's `address`")
	token := flag.String("token", os.Getenv("ANISOFLIGHT_TOKEN"), "bearer `token`")
	model := flag.String("model", "digits", "`name` of the model")
	n := flag.Int("n", 16, "`number` of images")
	nfe := flag.Int("nfe", 9, "`evaluations` of the network for each")
	out := flag.String("out", "samples", "`folder` for the images")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // Ctrl-C cancels the work on the server, too
	defer stop()
	if err := draw(ctx, *location, *token, api.Sample{Model: *model, N: n, NFE: *nfe}, *out); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// draw writes every image as soon as it comes.
func draw(ctx context.Context, location, token string, request api.Sample, folder string) error {
	c, err := client.Dial(ctx, location, client.Options{Token: token})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for m, err := range c.Sample(ctx, request) {
		if err != nil {
			return err
		}
		if step, ok := m.Meta["step"]; ok {
			fmt.Printf("step %v of %v\n", step, m.Meta["steps"])
		}
		shape := m.Schema.Columns[m.Schema.Index("sample")].Shape
		pixels := api.ColumnOf[uint8](m.Schema, m.Batch, "sample")
		seeds := api.ColumnOf[uint64](m.Schema, m.Batch, "seed")
		size := shape[0] * shape[1] * shape[2]
		for i, seed := range seeds {
			path := filepath.Join(folder, fmt.Sprintf("%d.png", seed))
			if err := write(path, pixels[i*size:(i+1)*size], shape[0], shape[1], shape[2]); err != nil {
				return err
			}
			fmt.Println(path)
		}
	}
	return nil
}

// write writes an image of interleaved channels, one (grey) or three.
func write(path string, pixels []uint8, height, width, channels int) error {
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range height * width {
		p := pixels[i*channels:]
		picture.SetRGBA(i%width, i/width, color.RGBA{R: p[0], G: p[channels/2], B: p[channels-1], A: 255})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := png.Encode(f, picture); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
