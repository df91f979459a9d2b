// The loss of a run while it trains.
function render({ model, el }) {
    const picture = plane("loss over steps");
    const said = made("p", { className: "anisoflight-state" });
    said.setAttribute("role", "status");
    el.classList.add("anisoflight-loss");
    el.append(picture.svg, said);

    function show() {
        const { step, loss, mean, state } = model.get("shown");
        const { svg, range, across, up } = picture;
        svg.replaceChildren();
        said.textContent = step.length ? `${state}, step ${step.at(-1)}, loss ${shortened(mean.at(-1))}` : state;
        if (!step.length) return;
        const logs = loss.map(Math.log10), means = mean.map(Math.log10);
        range.x = [step[0], Math.max(step.at(-1), step[0] + 1)];
        range.y = [Math.min(...logs), Math.max(...logs)];
        picture.axes("step", "loss", value => 10 ** value);
        const places = values => values.map((value, i) => [across(step[i]), up(value)]);
        svg.append(line(places(logs), COLOURS[0], { opacity: 0.35 }), line(places(means), COLOURS[0]));
    }
    model.on("change:shown", show);
    show();
}
export default { render };
