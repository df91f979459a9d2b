package api

import (
	"encoding/json"
)

// Measured asks for the data's own numbers where Channels may be declared.
const Measured = "measured"

// Channels are numbers of an image's channels: in JSON one for all, a list with one for each, or "measured", those that
// the data have. The zero value is left out.
type Channels struct {
	Values   []float64
	Measured bool
}

// Given reports whether the request says them.
func (c Channels) Given() bool { return c.Measured || c.Values != nil }

// IsZero reports whether they are left out of JSON.
func (c Channels) IsZero() bool { return !c.Given() }

// MarshalJSON writes the form that decodes to c.
func (c Channels) MarshalJSON() ([]byte, error) {
	if c.Measured {
		return json.Marshal(Measured)
	}
	return json.Marshal(c.Values)
}

// decodeStrictly reads "measured", a number or a list of numbers.
func (c *Channels) decodeStrictly(at place, v rawValue) error {
	*c = Channels{}
	switch v.Kind() {
	case '"':
		if c.Measured = string(v) == `"`+Measured+`"`; !c.Measured {
			return Errorf(BadRequest, "%s must be a number, a list with one for each channel, or \"measured\", got %s", at,
				describe(v))
		}
		return nil
	case '[':
		if err := decodeJSON(v, at, &c.Values); err != nil {
			return err
		}
		if len(c.Values) == 0 {
			return Errorf(BadRequest, "%s must not be empty", at)
		}
		return nil
	}
	c.Values = make([]float64, 1)
	return decodeJSON(v, at, &c.Values[0])
}
