// Package sampling draws samples: a request becomes a schedule, a plan of each of its rows and where samples start, and
// rows of seeds or of the caller's own latents become images, bucket by bucket.
//
// Every plan is made and the reply is priced before any work. What was found stays as it is while the request runs:
// models, schedules and plans are immutable, and their weights are held on the device.
//
// Begin with Sampler.
package sampling
