// Package sampling draws samples. A request becomes a schedule, a plan for each of its rows, and a start. Rows of
// seeds, or of the caller's own latents, become images, bucket by bucket.
//
// Every plan is made and the reply is priced before any work. Models, schedules and plans do not change while the
// request runs, and the model's weights are held on the device.
//
// Begin with Sampler.
package sampling
