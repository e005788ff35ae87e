// What pages do beyond htmx: keys, and the mark of what is chosen. Every page works without it.
(() => {
  // A form that was refused is shown on its page again: there a reload leads, and not to sending it once more.
  document.addEventListener("DOMContentLoaded", () => {
    const address = document.querySelector("main[data-address]")?.dataset.address;
    if (address) history.replaceState(null, "", address);
  });

  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !typing(event.target) && !event.metaKey && !event.ctrlKey) {
      const search = document.querySelector('main input[type="search"]');
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea[data-enter-sends]")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  // What is unfolded to be filled in folds up again by Cancel and by Escape.
  const fold = (part) => {
    part.querySelector("form")?.reset();
    part.open = false;
    part.querySelector("summary").focus();
  };
  document.addEventListener("click", (event) => {
    const part = event.target.closest("[data-close]")?.closest("details.editing");
    if (part) fold(part);
  });
  document.addEventListener("keydown", (event) => {
    const part = event.key === "Escape" && !event.isComposing && event.target.closest("details.editing[open]");
    if (part) fold(part);
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
    const files = event.target.querySelector(".attach input");
    if (!files) return;
    files.value = "";
    nameFiles(files);
  });

  // The files that are chosen are named where they were called for.
  const nameFiles = (files) => {
    const label = files.closest(".attach"), call = label.querySelector(".call");
    label.dataset.call ??= call.textContent;
    call.textContent = Array.from(files.files, (file) => file.name).join(", ") || label.dataset.call;
    label.toggleAttribute("data-chosen", files.files.length > 0);
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches(".attach input")) nameFiles(event.target);
  });

  document.addEventListener("click", (event) => {
    const chosen = event.target.closest(".list a[hx-get]");
    if (!chosen) return;
    for (const other of document.querySelectorAll(".list a[aria-current]")) other.removeAttribute("aria-current");
    chosen.setAttribute("aria-current", "true");
  });

  // All of a table are chosen at once by a box that only a script can serve.
  const offerAll = () => { for (const box of document.querySelectorAll("input[data-all]")) box.hidden = false; };
  document.addEventListener("DOMContentLoaded", offerAll);
  document.addEventListener("htmx:after:swap", offerAll);
  document.addEventListener("change", (event) => {
    if (!event.target.matches("input[data-all]")) return;
    for (const box of event.target.form.querySelectorAll('input[name="id"]')) box.checked = event.target.checked;
  });
  // More of a table comes below it: the way to it is used once.
  document.addEventListener("htmx:after:request", (event) => {
    const way = event.target.closest && event.target.closest("a[data-once]");
    if (way) way.closest("p").remove();
  });

  // A page in front of somebody asks again when what it shows has changed elsewhere: its live part alone is brought up
  // to date. What one types in, has chosen, stands on with the keys, or has listed beyond its first page is not taken
  // away: then a button says that there is something new.
  let listed = false;
  document.addEventListener("click", (event) => {
    if (event.target.closest(".more a")) listed = true;
    if (event.target.closest("[data-reload]")) location.reload();
  });
  const isFilled = (field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.matches("select") ? [...field.options].some((each) => each.defaultSelected) && !field.selectedOptions[0]?.defaultSelected
    : field.value !== field.defaultValue;
  document.addEventListener("DOMContentLoaded", () => {
    const page = document.querySelector("[data-live]")?.dataset;
    if (!page || !window.EventSource) return;
    let source = null;
    const changed = () => {
      const parts = [...document.querySelectorAll("[data-live]")];
      const shown = parts.map((part) => document.querySelector(part.getAttribute("hx-target") ?? `#${part.id}`));
      const busy = listed || document.querySelector("main details.editing[open]") || shown.some((part) =>
        part.contains(document.activeElement) || [...part.querySelectorAll("input, textarea, select")].some(isFilled));
      if (busy) document.getElementById("news").hidden = false;
      else for (const part of parts) ask(part);
    };
    const ask = (part) => part.hasAttribute("hx-get") ? htmx.trigger(part, "changed")
      : htmx.ajax("GET", location.pathname + location.search, { source: part, target: part, select: `#${part.id}`, swap: "outerMorph" });
    const watch = () => {
      if (document.hidden) { source?.close(); source = null; return; }
      if (source) return;
      source = new EventSource(`/events?page=${page.live}${page.of ? `&of=${page.of}` : ""}`);
      source.addEventListener("changed", changed);
    };
    watch();
    document.addEventListener("visibilitychange", () => { const back = !source && !document.hidden; watch(); if (back) changed(); });
    window.addEventListener("pagehide", () => { source?.close(); source = null; });
  });
  // What somebody has opened to read stays open.
  document.addEventListener("DOMContentLoaded", () => htmx.registerExtension("kept-open", {
    htmx_before_morph_attr: (element, { attrName }) => !(attrName === "open" && element.matches("details")),
  }));

  // ⌘K, or Ctrl and K, finds what one may open, from any page; arrows go through what was found.
  const find = () => document.getElementById("find");
  const open = () => {
    find().showModal();
    const box = find().querySelector("input");
    box.select();
    htmx.trigger(box, "opened");
  };
  document.addEventListener("keydown", (event) => {
    if (!find()) return;
    if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (find().open) find().close(); else open();
    }
    if (!find().open) return;
    if (event.key === "Escape") { event.preventDefault(); find().close(); }  // else a browser empties the box first
    const ways = [find().querySelector("input"), ...find().querySelectorAll("#found a")];
    const at = ways.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      ways[Math.min(ways.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))].focus();
    }
    if (event.key === "Enter" && at === 0 && !event.isComposing) { event.preventDefault(); following = true; follow(); }
  });
  // What is there when somebody presses Enter may be of what they had typed before: then it waits for what fits.
  let following = false;
  const follow = () => {
    const shown = find()?.querySelector("[data-of]");
    if (!following || !shown || shown.dataset.of !== find().querySelector("input").value) return;
    following = false;
    shown.querySelector("a")?.click();
  };
  document.addEventListener("htmx:after:swap", follow);
  document.addEventListener("input", () => { following = false; });
  document.addEventListener("click", (event) => {
    if (event.target.closest("a[data-find]") && !event.metaKey && !event.ctrlKey) { event.preventDefault(); open(); }
    if (event.target.id === "find") event.target.close();
  });

  // Of tabs that are wider than the screen, the one of the page is in view.
  document.addEventListener("DOMContentLoaded", () => {
    for (const chosen of document.querySelectorAll(".shelves [aria-current]")) {
      const row = chosen.closest(".shelves"), end = chosen.offsetLeft - row.offsetLeft + chosen.offsetWidth;
      if (end > row.clientWidth - 28) row.scrollLeft = end - row.clientWidth + 28;
    }
  });

  // Who asks why an answer was given is led to what it was made of: on a narrow screen that stands below the transcript.
  let asksWhy = false;
  document.addEventListener("click", (event) => { asksWhy = Boolean(event.target.closest('a[hx-target="#sources"]')); });
  document.addEventListener("htmx:after:swap", () => {
    if (!asksWhy) return;
    asksWhy = false;
    const heading = document.querySelector("#sources h2"), made = document.querySelector("#sources details.made");
    if (made) made.open = true;
    heading?.focus({ preventScroll: true });
    heading?.scrollIntoView({ block: window.matchMedia("(max-width: 1000px)").matches ? "start" : "nearest" });
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
