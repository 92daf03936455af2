package redact_test

import (
	"fmt"
	"log"
	"os"

	"pidb/repo/redact"
)

// What is to be shared is searched first, then written with masks.
func Example() {
	const random = "q8Zr2LxVb7TnWc4Kd9Hy" + "Pf3Gs6Jm"
	line := `{"type":"message","text":"with token=` + random + ` it works"}` + "\n"

	redactor, err := redact.New()
	if err != nil {
		log.Fatal(err)
	}
	learn := redactor.Learn()
	fmt.Fprint(learn, line)
	if err := learn.Close(); err != nil {
		log.Fatal(err)
	}
	out := redactor.Writer(os.Stdout)
	fmt.Fprint(out, line)
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
	for _, rule := range out.Report().Rules {
		fmt.Println(rule.Rule, rule.Secrets, rule.Masks)
	}
	// Output:
	// {"type":"message","text":"with token=[redacted:generic-api-key:1] it works"}
	// generic-api-key 1 1
}
