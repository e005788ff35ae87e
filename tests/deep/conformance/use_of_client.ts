// What somebody writes against the types that openapi-typescript makes of the document, without a cast.
import type { paths } from "./api";

type Body<P extends keyof paths> = paths[P] extends { post: { requestBody: { content: { "application/json": infer B } } } } ? B : never;
type Answers<P extends keyof paths> = paths[P] extends { post: { responses: { 200: { content: infer A } } } } ? A : never;

export const written: Body<"/v1/entries"> = { content: "We deploy on Fridays" };
export const asked: Body<"/v1/chat"> = { content: "When do we deploy?" };
export const searched: Body<"/v1/query"> = { question: "When do we deploy?", kinds: ["decision"] };
export const text = (answer: Answers<"/v1/chat">["application/json"]): string | null => answer.text;
export const found = (answer: Answers<"/v1/query">["application/json"]): number => answer.items.length;
export const said = (answer: Answers<"/v1/chat/completions">["application/json"]): unknown => answer.choices[0]?.message.content;
export const called: Body<"/mcp"> = { jsonrpc: "2.0", id: 1, method: "tools/list" };
export const types: [keyof Answers<"/v1/chat">, keyof Answers<"/v1/chat/stream">] = ["application/json", "text/event-stream"];
export const order: NonNullable<NonNullable<paths["/v1/entries"]["get"]["parameters"]["query"]>["sort"]> = "-used";
