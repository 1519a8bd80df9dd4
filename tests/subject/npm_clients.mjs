// The official clients of npm against a gateway: prints what each got as one JSON object.
// Arguments: the gateway's address without a version, its token.
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const [root, token] = process.argv.slice(2);
const parameters = { type: "object", properties: { path: { type: "string" } } };
const said = [{ role: "user", content: "go" }];
const openai = new OpenAI({ baseURL: `${root}/v1`, apiKey: token, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: root, apiKey: token, maxRetries: 0 });
const google = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: root } });

// What a client got, or the status that it was refused with.
async function got(ask) {
  try {
    return await ask();
  } catch (error) {
    return { status: error.status ?? String(error) };
  }
}

const chat = {
  model: "x",
  messages: said,
  tools: [{ type: "function", function: { name: "read_file", description: "Reads.", parameters } }],
};
const responses = {
  model: "x",
  input: "go",
  tools: [{ type: "function", name: "read_file", description: "Reads.", parameters, strict: null }],
};
const messages = {
  model: "x",
  max_tokens: 50,
  messages: said,
  tools: [{ name: "read_file", description: "Reads.", input_schema: parameters }],
};
const gemini = {
  model: "x",
  contents: "go",
  config: { tools: [{ functionDeclarations: [{ name: "read_file", description: "Reads.", parameters }] }] },
};

const ofChat = ({ choices: [{ message, finish_reason }] }) => ({
  text: message.content ?? "",
  calls: (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
  end: finish_reason,
});
const ofResponse = (response) => ({
  text: response.output.flatMap((item) => item.content ?? []).map((part) => part.text).join(""),
  calls: response.output
    .filter((item) => item.type === "function_call")
    .map((item) => [item.name, JSON.parse(item.arguments)]),
  end: response.status,
});
const ofMessage = ({ content, stop_reason }) => ({
  text: content.filter((part) => part.type === "text").map((part) => part.text).join(""),
  calls: content.filter((part) => part.type === "tool_use").map((part) => [part.name, part.input]),
  end: stop_reason,
});
const ofGemini = (replies) => {
  const parts = replies.flatMap((reply) => reply.candidates?.[0]?.content?.parts ?? []);
  return {
    text: parts.map((part) => part.text ?? "").join(""),
    calls: parts.filter((part) => part.functionCall).map(({ functionCall }) => [functionCall.name, functionCall.args]),
    end: replies.at(-1).candidates[0].finishReason,
  };
};

const report = {
  chat: await got(async () => ofChat(await openai.chat.completions.create(chat))),
  chatStream: await got(async () => ofChat(await openai.chat.completions.stream(chat).finalChatCompletion())),
  responses: await got(async () => ofResponse(await openai.responses.create(responses))),
  responsesStream: await got(async () => ofResponse(await openai.responses.stream(responses).finalResponse())),
  messages: await got(async () => ofMessage(await anthropic.messages.create(messages))),
  messagesStream: await got(async () => ofMessage(await anthropic.messages.stream(messages).finalMessage())),
  gemini: await got(async () => ofGemini([await google.models.generateContent(gemini)])),
  geminiStream: await got(async () => {
    const replies = [];
    for await (const reply of await google.models.generateContentStream(gemini)) replies.push(reply);
    return ofGemini(replies);
  }),
  compacted: await got(async () => {
    const { output, object } = await openai.responses.compact({ model: "x", input: said });
    const next = await openai.responses.create({ model: "x", input: [...output, { role: "user", content: "go on" }] });
    return { object, types: output.map((item) => item.type), next: next.output_text };
  }),
};
console.log(JSON.stringify(report));
