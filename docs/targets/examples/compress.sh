#!/bin/sh
# A compressor in shell: keeps the system prompt, the first request and the newest messages. Needs jq.
while IFS= read -r line; do
  printf '%s\n' "$line" | jq -c '
    if .type == "start" then {type: "ready", resumable: true}
    elif (.messages | length) == 0 then {type: "error", id, message: "there are no messages"}
    else
      .id as $id
      | (.messages | map(select(.role == "system" or .role == "developer"))) as $head
      | (.messages | map(select(.role != "system" and .role != "developer"))) as $rest
      # A cut before a tool answer would leave it without its call.
      | ([range(0; $rest | length) | select($rest[.].role == "user")] | .[-2] // 0) as $cut
      | {type: "result", id: $id, messages: (
          if $cut < 2 then $head + $rest else
          $head + [{role: "user", content: ("First request: " + ($rest[0].content | tostring) + "\n[earlier messages were dropped]")}]
          + $rest[$cut:] end)}
    end'
done
