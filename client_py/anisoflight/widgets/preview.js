// Images on their way from noise, a step at a time.
function render({ model, el }) {
    const image = made("img", { className: "anisoflight-frame" });
    image.style.cssText = "image-rendering: pixelated; max-width: 100%; display: block;";
    const slider = made("input", { type: "range", min: 0, step: 1, className: "anisoflight-place" });
    slider.setAttribute("aria-label", "step");
    const label = made("output", {});
    const play = made("button", { type: "button", textContent: "Play", className: "anisoflight-play" });
    let timer = null;
    el.classList.add("anisoflight-previews");
    el.append(image, made("div", {}, play, " ", slider, " ", label));

    function show() {
        const frames = model.get("frames"), place = Math.min(model.get("place"), frames.length - 1);
        slider.max = frames.length - 1;
        slider.value = place;
        image.src = frames[place].picture;
        image.alt = `images, ${frames[place].name}`;
        image.width = model.get("width");
        label.textContent = frames[place].name;
    }
    function go(place) {
        model.set("place", place);
        model.save_changes();
    }
    function stop() {
        clearInterval(timer);
        timer = null;
        play.textContent = "Play";
    }
    play.addEventListener("click", () => {
        if (timer) return stop();
        const last = model.get("frames").length - 1;
        if (model.get("place") >= last) go(0);
        play.textContent = "Stop";
        timer = setInterval(() => {
            if (model.get("place") >= last) return stop();
            go(model.get("place") + 1);
        }, 400);
    });
    slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
    model.on("change:place change:frames", show);
    show();
    return stop;
}
export default { render };
