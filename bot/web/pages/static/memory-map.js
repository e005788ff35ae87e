// What the map of memories does beyond links: it is zoomed, dragged and pinched, and walked by keys.
(() => {
  // The map: a point is opened beside it, and the wheel, a drag and buttons show a part of it.
  document.addEventListener("DOMContentLoaded", () => {
    const map = document.querySelector("svg.points");
    if (!map) return;
    const [width, height] = [map.viewBox.baseVal.width, map.viewBox.baseVal.height];
    let view = { x: 0, y: 0, scale: 1 }, held = null, moved = false;
    // On a telephone the map is a third as wide: its points are drawn larger there, and a finger takes the nearest.
    const narrow = window.matchMedia("(max-width: 760px)");
    const show = () => {
      const radius = map.dataset.r * Math.sqrt(view.scale) * (narrow.matches ? 1.8 : 1);
      map.setAttribute("viewBox", `${view.x} ${view.y} ${width * view.scale} ${height * view.scale}`);
      map.classList.toggle("zoomed", view.scale < 1);
      map.style.setProperty("--r", `${radius}px`);
    };
    show();
    // One of them is reached by the Tab key, the others from there by arrow keys; without this script all are links.
    for (const [n, point] of map.querySelectorAll("a").entries()) point.setAttribute("tabindex", n ? "-1" : "0");
    narrow.addEventListener("change", show);
    const zoom = (by, x, y) => {
      const scale = Math.min(1, Math.max(0.02, view.scale * by));
      view = { scale, x: x - (x - view.x) * scale / view.scale, y: y - (y - view.y) * scale / view.scale };
      if (scale === 1) view = { x: 0, y: 0, scale };
      show();
    };
    const place = (event) => {
      const box = map.getBoundingClientRect();
      return [view.x + (event.clientX - box.left) / box.width * width * view.scale, view.y + (event.clientY - box.top) / box.height * height * view.scale];
    };
    map.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 0.8 : 1.25, ...place(event)); }, { passive: false });
    // Two fingers zoom: by how their distance changes, around the middle between them.
    const fingers = new Map();
    const spread = () => { const [one, two] = [...fingers.values()]; return Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY); };
    const middle = () => { const [one, two] = [...fingers.values()]; return { clientX: (one.clientX + two.clientX) / 2, clientY: (one.clientY + two.clientY) / 2 }; };
    map.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, event);
      held = place(event);
      if (fingers.size < 2) moved = false;
    });
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, (event) => { fingers.delete(event.pointerId); held = null; });
    map.addEventListener("pointermove", (event) => {
      if (fingers.has(event.pointerId) && fingers.size === 2) {
        const before = spread();
        fingers.set(event.pointerId, event);
        moved = true;
        if (spread() > 0 && before > 0) zoom(before / spread(), ...place(middle()));
        return;
      }
      if (fingers.size > 1 || !held || !event.buttons) return;
      const [x, y] = place(event);
      if (Math.hypot(x - held[0], y - held[1]) > 4 * view.scale) moved = true;
      if (moved) { view.x -= x - held[0]; view.y -= y - held[1]; show(); }
    });
    const near = (event) => {
      let nearest = null, least = 24;
      for (const point of map.querySelectorAll("a")) {
        const box = point.getBoundingClientRect();
        const away = Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
        if (away < least) [nearest, least] = [point, away];
      }
      return nearest;
    };
    map.addEventListener("click", (event) => {
      const point = event.target.closest("a") ?? near(event);
      if (!point) return;
      event.preventDefault();
      if (!moved) htmx.ajax("GET", point.getAttribute("href"), { target: "#detail", swap: "innerHTML" });
      for (const other of map.querySelectorAll("[data-chosen]")) other.removeAttribute("data-chosen");
      if (!moved) point.setAttribute("data-chosen", "");
    });
    // Arrow keys go to the nearest point in their direction, which is brought into view.
    const where = (point) => { const circle = point.querySelector("circle"); return [circle.cx.baseVal.value, circle.cy.baseVal.value]; };
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    map.addEventListener("keydown", (event) => {
      const from = event.target.closest("a");
      if (!from || event.metaKey || event.ctrlKey || event.altKey) return;
      const [x, y] = where(from);
      if (event.key === "+" || event.key === "-") { event.preventDefault(); zoom(event.key === "+" ? 0.7 : 1.43, x, y); }
      if (!ways[event.key]) return;
      event.preventDefault();
      const [along, down] = ways[event.key];
      let nearest = null, least = Infinity;
      for (const point of map.querySelectorAll("a")) {
        const [dx, dy] = [where(point)[0] - x, where(point)[1] - y];
        const ahead = dx * along + dy * down, aside = Math.abs(dx * down) + Math.abs(dy * along);
        if (point !== from && ahead > 0 && ahead + 2 * aside < least) [nearest, least] = [point, ahead + 2 * aside];
      }
      if (!nearest) return;
      from.setAttribute("tabindex", "-1");
      nearest.setAttribute("tabindex", "0");
      nearest.focus({ preventScroll: true });
      const [toX, toY] = where(nearest), wide = width * view.scale, high = height * view.scale;
      if (toX < view.x || toX > view.x + wide || toY < view.y || toY > view.y + high) {
        view.x = Math.min(width - wide, Math.max(0, toX - wide / 2));
        view.y = Math.min(height - high, Math.max(0, toY - high / 2));
        show();
      }
    });
    const buttons = document.querySelector(".zoom");
    buttons.hidden = false;
    buttons.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.zoom) zoom(Number(button.dataset.zoom), view.x + width * view.scale / 2, view.y + height * view.scale / 2);
      else { view = { x: 0, y: 0, scale: 1 }; show(); }
    });
  });
})();
