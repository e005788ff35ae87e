// Tries a new key, as its tool will: over MCP, or through the gateway. What comes is shown as text.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("try"), said = document.getElementById("tried");
  const key = document.querySelector(".copied.key pre").textContent.trim();
  form.hidden = false;

  const ask = async (path, body) => {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    const answer = await fetch(path, { method: body ? "POST" : "GET", headers, credentials: "omit", body: body && JSON.stringify(body) });
    const told = await answer.json();
    const wrong = told.error?.message ?? told.detail;
    if (!answer.ok || wrong) throw new Error(wrong ?? String(answer.status));
    return told;
  };
  const byMcp = async (query) => {
    const params = { name: "search", arguments: { query, limit: 5 } };
    const { result } = await ask("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params });
    const text = result.content.map((each) => each.text).join("\n");
    if (result.isError) throw new Error(text);
    return JSON.parse(text).results.map((each) => each.text).join("\n\n") || form.dataset.nothing;
  };
  const byGateway = async (content) => {
    const [model] = (await ask("/v1/models")).data;
    const { choices } = await ask("/v1/chat/completions", { model: model.id, messages: [{ role: "user", content }] });
    return choices[0].message.content;
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const question = form.elements.question.value, through = event.submitter?.value === "gateway" ? byGateway : byMcp;
    said.textContent = form.dataset.asking;
    try {
      said.textContent = await through(question);
    } catch (error) {
      said.textContent = `${form.dataset.failed} ${error.message}`;
    }
  });
});
