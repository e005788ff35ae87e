// What pages do beyond htmx: keys, and the mark of what is chosen. Every page works without it.
(() => {
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !typing(event.target) && !event.metaKey && !event.ctrlKey) {
      const search = document.querySelector('input[type="search"]');
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea[data-enter-sends]")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  // What is pasted elsewhere is copied by a button; without one, a click chooses all of it.
  document.addEventListener("DOMContentLoaded", () => {
    if (!navigator.clipboard) return;
    for (const text of document.querySelectorAll("pre[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn";
      button.dataset.variant = "outline";
      button.textContent = text.dataset.copy;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = text.dataset.copied;
        document.getElementById("announcements").textContent = text.dataset.copied;
      });
      text.after(button);
    }
  });

  // What was sent stands in the transcript by now: the box is free for the next question.
  document.addEventListener("htmx:sse:after:connection", (event) => {
    const box = event.target.querySelector("textarea[data-enter-sends]");
    if (box) box.value = "";
  });

  document.addEventListener("click", (event) => {
    const chosen = event.target.closest(".list a[hx-get]");
    if (!chosen) return;
    for (const other of document.querySelectorAll(".list a[aria-current]")) other.removeAttribute("aria-current");
    chosen.setAttribute("aria-current", "true");
  });

  // On a narrow screen one memory takes the whole page: it is shown where one looks.
  document.addEventListener("htmx:after:swap", () => {
    const detail = document.getElementById("detail");
    if (detail && detail.querySelector(".memory")) {
      detail.removeAttribute("data-empty");
      if (window.matchMedia("(max-width: 1000px)").matches) detail.scrollIntoView({ block: "start" });
    }
  });
})();
