package repo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"pidb/query"
	"pidb/repo"
)

// message is a message as pi has it, as far as these examples need it.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Tool    string `json:"toolName,omitempty"`
}

// model stands for a language model: it asks for a tool, and answers when it has its result.
func model(messages []message) message {
	last := messages[len(messages)-1]
	if last.Role == "user" {
		return message{Role: "assistant", Content: "run: go test"}
	}
	return message{Role: "assistant", Content: "The tests say: " + last.Content}
}

// An agent loop: every message is in the archive before the next step is taken, and each
// turn of the model is given what the archive has. Killed at any point, the program goes
// on where it was with [repo.Archive.Continue].
func Example_agent() {
	ctx := context.Background()
	archive, err := repo.OpenTemporary(ctx, nil) // repo.Open(ctx, "agent.db", nil) to keep it
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()

	session, err := archive.Continue(ctx, "/home/mira/relay", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Append(ctx, repo.ModelChange("acme", "large"), repo.Message(message{Role: "user", Content: "Do the tests pass?"})); err != nil {
		log.Fatal(err)
	}
	for {
		now, err := session.Context(ctx)
		if err != nil {
			log.Fatal(err)
		}
		var messages []message
		for _, m := range now.Messages {
			var one message
			if err := json.Unmarshal(m.JSON, &one); err != nil {
				log.Fatal(err)
			}
			messages = append(messages, one)
		}
		answer := model(messages)
		if _, err := session.Append(ctx, repo.Message(answer)); err != nil {
			log.Fatal(err)
		}
		command, ok := strings.CutPrefix(answer.Content, "run: ")
		if !ok {
			fmt.Println(answer.Content)
			break
		}
		result := message{Role: "toolResult", Content: command + " passes", Tool: "bash"}
		if _, err := session.Append(ctx, repo.Message(result)); err != nil {
			log.Fatal(err)
		}
	}
	path, err := session.Path(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range path {
		fmt.Println(strings.TrimSpace(e.Type + " " + e.Role))
	}
	// Output:
	// The tests say: go test passes
	// model_change
	// message user
	// message assistant
	// message toolResult
	// message assistant
}

// A chat that goes back: the second question is asked anew, the first try stays as a
// branch of its own with a summary of it beside, and the better end becomes a session.
func Example_branches() {
	ctx := context.Background()
	archive, err := repo.OpenTemporary(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	chat, err := archive.Create(ctx, "/home/mira/notes", &repo.CreateOptions{Metadata: map[string]any{"client": "example"}})
	if err != nil {
		log.Fatal(err)
	}
	say := func(role, text string) string {
		ids, err := chat.Append(ctx, repo.Message(message{Role: role, Content: text}))
		if err != nil {
			log.Fatal(err)
		}
		return ids[0]
	}
	say("user", "Name a bird.")
	bird := say("assistant", "The wren.")
	say("user", "A larger one?")
	say("assistant", "The ostrich.")

	// Back to the bird, with a word about what was left, and a label to find it by.
	if _, err := chat.Append(ctx, repo.BranchSummary(bird, "The ostrich was too large.", nil), repo.Label(bird, "bird")); err != nil {
		log.Fatal(err)
	}
	say("user", "One that sings louder?")
	say("assistant", "The nightingale.")

	err = archive.View(ctx, func(rx *query.Rx) error {
		for node, err := range rx.Tree(ctx, chat.Key()) {
			if err != nil {
				return err
			}
			word := node.Entry.Role
			if word == "" {
				word = node.Entry.Type
			}
			fmt.Println(strings.TrimRight(strings.Repeat("  ", int(node.Depth))+word+" "+node.Label, " "))
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	kept, err := archive.Extract(ctx, chat.Leaf(), nil)
	if err != nil {
		log.Fatal(err)
	}
	now, err := kept.Context(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(now.Messages), "messages in the extract")
	// Output:
	// user
	//   assistant bird
	//     user
	//       assistant
	//     branch_summary
	//       label
	//         user
	//           assistant
	// 5 messages in the extract
}
