// What the widgets share: SVG by hand, scales, and the colours of Okabe and Ito.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const WIDTH = 520, HEIGHT = 300;
const EDGE = { left: 56, right: 14, top: 12, bottom: 34 };

function drawn(name, attributes = {}, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
}

function made(name, properties = {}, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
}

// A picture with axes: low and high of both, an SVG to draw on, and its maps from values to places.
function plane(label) {
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": label, "font-size": 11 });
    svg.style.cssText = `width: 100%; max-width: ${WIDTH}px; display: block;`;
    const wide = WIDTH - EDGE.left - EDGE.right, high = HEIGHT - EDGE.top - EDGE.bottom;
    const range = { x: [0, 1], y: [0, 1] };
    const part = (value, [low, most]) => (most > low ? (value - low) / (most - low) : 0.5);
    const across = value => EDGE.left + part(value, range.x) * wide;
    const up = value => HEIGHT - EDGE.bottom - part(value, range.y) * high;
    const axes = (x, y, shown = value => value) => {
        svg.append(drawn("path", { fill: "none", stroke: "currentColor",
            d: `M${EDGE.left} ${EDGE.top}V${HEIGHT - EDGE.bottom}H${WIDTH - EDGE.right}` }));
        const text = (x, y, anchor, value) => svg.append(drawn("text",
            { x, y, "text-anchor": anchor, fill: "currentColor" }, value));
        for (const [value, anchor] of [[range.x[0], "start"], [range.x[1], "end"]])
            text(across(value), HEIGHT - 16, anchor, shortened(value));
        for (const value of range.y) text(EDGE.left - 6, up(value) + 4, "end", shortened(shown(value)));
        text(EDGE.left + wide / 2, HEIGHT - 16, "middle", x);
        text(EDGE.left - 6, EDGE.top + high / 2, "end", y);
    };
    return { svg, range, across, up, axes };
}

function shortened(value) {
    const size = Math.abs(value);
    return size && (size < 1e-3 || size >= 1e6) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

function line(points, colour, more = {}) {
    return drawn("polyline", { points: points.map(place => place.map(value => value.toFixed(1)).join()).join(" "),
        fill: "none", stroke: colour, "stroke-width": 1.8, ...more });
}
