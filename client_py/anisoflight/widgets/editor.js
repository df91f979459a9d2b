// Knots of a schedule to drag; what they are worth comes back from the server, one question at a time.
function render({ model, el }) {
    const picture = plane("noise level over time; drag the knots");
    const table = made("table", { className: "anisoflight-measures" });
    const message = made("p", { className: "anisoflight-message" });
    message.setAttribute("role", "status");
    const nfe = made("input", { type: "range", min: 2, max: 40, step: 1, className: "anisoflight-nfe" });
    const counted = made("output", {});
    const solver = made("select", { className: "anisoflight-solver" });
    const reset = made("button", { textContent: "Reset", className: "anisoflight-reset", type: "button" });
    const bar = made("div", {}, made("label", {}, "evaluations ", nfe), " ", counted, " ",
        made("label", {}, "solver ", solver), " ", reset);
    const help = made("p", { textContent: "Drag a knot, or move it with the arrow keys. Double-click adds one, " +
        "on a knot it removes it. Grey is where you began." });
    help.style.cssText = "opacity: .7; margin: 4px 0;";
    el.classList.add("anisoflight-editor");
    el.append(picture.svg, bar, table, message, help);

    let paths = [], held = null, pressed = null, asked = 0, waiting = false, changed = false;
    const copied = value => JSON.parse(JSON.stringify(value));

    function ask() {
        changed = true;
        if (waiting) return;
        [waiting, changed, asked] = [true, false, asked + 1];
        model.set("edit", { number: asked, paths: copied(paths), nfe: Number(nfe.value), solver: solver.value });
        model.save_changes();
    }

    function draw() {
        const { svg, range, across, up } = picture;
        const began = model.get("curves");
        const levels = began.concat(paths).flatMap(path => path.sigma.map(Math.log));
        range.x = [0, began[0].t.at(-1)];
        range.y = [Math.min(...levels), Math.max(...levels)];
        const focus = svg.querySelector(":focus")?.dataset.knot;
        svg.replaceChildren();
        picture.axes("t", "σ", Math.exp);
        const places = path => path.t.map((t, k) => [across(t), up(Math.log(path.sigma[k]))]);
        for (const path of began) svg.append(line(places(path), "#999", { "stroke-dasharray": "4 3" }));
        paths.forEach((path, number) => {
            const colour = COLOURS[number % COLOURS.length];
            svg.append(line(places(path), colour));
            if (paths.length > 1)
                svg.append(drawn("text", { x: EDGE.left + 12, y: EDGE.top + 14 * (number + 1), fill: colour }, path.name));
            places(path).forEach(([cx, cy], k) => {
                const fixed = k === 0 || k === path.t.length - 1;
                const knot = drawn("circle", { cx, cy, r: fixed ? 3 : 6, fill: fixed ? colour : "white", stroke: colour,
                    "stroke-width": 2, "data-knot": `${number}.${k}` });
                if (!fixed) {
                    knot.setAttribute("tabindex", 0);
                    knot.setAttribute("aria-label", `${path.name}, knot ${k}: t ${shortened(path.t[k])}, σ ${shortened(path.sigma[k])}`);
                    knot.style.cursor = "grab";
                    knot.addEventListener("pointerdown", event => {
                        held = pressed = [number, k];
                        svg.setPointerCapture(event.pointerId);
                        event.preventDefault();
                    });
                    knot.addEventListener("keydown", event => stepped(event, number, k));
                }
                svg.append(knot);
            });
        });
        if (focus) svg.querySelector(`[data-knot="${focus}"]`)?.focus();
    }

    // A knot stays between its neighbours, in time and in noise.
    function move(number, k, t, log) {
        const path = paths[number], share = 1e-3;
        const between = (value, low, high) => {
            const gap = share * (high - low);
            return Math.min(high - gap, Math.max(low + gap, value));
        };
        path.t[k] = between(t, path.t[k - 1], path.t[k + 1]);
        path.sigma[k] = Math.exp(between(log, Math.log(path.sigma[k - 1]), Math.log(path.sigma[k + 1])));
        draw();
        ask();
    }

    function stepped(event, number, k) {
        const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key];
        if (event.key === "Delete") removed(number, k);
        if (!way) return;
        event.preventDefault();
        event.stopPropagation();
        const { x, y } = picture.range, path = paths[number];
        move(number, k, path.t[k] + way[0] * (x[1] - x[0]) / 50, Math.log(path.sigma[k]) + way[1] * (y[1] - y[0]) / 50);
    }

    function removed(number, k) {
        const path = paths[number];
        if (path.t.length <= 2) return;
        path.t.splice(k, 1);
        path.sigma.splice(k, 1);
        draw();
        ask();
    }

    // On the path whose line is nearest.
    function added(t, log) {
        const span = picture.range.x[1];
        if (!(t > 1e-3 * span && t < (1 - 1e-3) * span)) return;
        const at = path => {
            const k = path.t.findIndex(later => later > t);
            const share = (t - path.t[k - 1]) / (path.t[k] - path.t[k - 1]);
            return [k, (1 - share) * Math.log(path.sigma[k - 1]) + share * Math.log(path.sigma[k])];
        };
        const far = paths.map(path => Math.abs(at(path)[1] - log));
        const path = paths[far.indexOf(Math.min(...far))];
        const [k, level] = at(path);
        path.t.splice(k, 0, t);
        path.sigma.splice(k, 0, Math.exp(level));
        draw();
        ask();
    }

    picture.svg.addEventListener("pointerdown", () => { pressed = null; }, true);  // before the knots hear of it
    picture.svg.addEventListener("pointermove", event => {
        if (held) move(...held, ...picture.back(event));
    });
    const released = () => { held = null; };
    picture.svg.addEventListener("pointerup", released);
    picture.svg.addEventListener("pointercancel", released);
    picture.svg.addEventListener("dblclick", event => {
        if (pressed) removed(...pressed);
        else added(...picture.back(event));
    });

    function told() {
        const result = model.get("result");
        message.textContent = result.message || "";
        table.replaceChildren(made("tr", {}, ...["", "before", "now"].map(text => made("th", { textContent: text }))));
        for (const row of result.measures || []) {
            const cells = [row.name, shortened(row.before), shortened(row.now)].map(text => made("td", { textContent: text }));
            cells[2].style.fontWeight = "bold";
            cells[2].style.color = row.now < row.before ? "#009E73" : row.now > row.before ? "#D55E00" : "";
            table.append(made("tr", {}, ...cells));
        }
        el.dataset.answered = result.number;
        if (result.number !== asked) return;
        waiting = false;
        if (changed) ask();
    }

    function taken() {
        paths = copied(model.get("paths"));
        nfe.value = model.get("nfe");
        solver.replaceChildren(...model.get("solvers").map(name => made("option", { value: name, textContent: name })));
        solver.value = model.get("solver");
        counted.textContent = nfe.value;
        if (!held) draw();
    }

    nfe.addEventListener("input", () => { counted.textContent = nfe.value; ask(); });
    solver.addEventListener("change", ask);
    reset.addEventListener("click", () => { paths = copied(model.get("original")); draw(); ask(); });
    model.on("change:result", told);
    model.on("change:paths", () => { if (!waiting) taken(); });
    asked = model.get("result").number || 0;
    taken();
    told();
}
export default { render };
