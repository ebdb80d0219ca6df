// Pictures of the package: of a file that has no view of its own, and of the view.

import { byId, element, save } from "./text.js";

export class PicturesView {
  constructor(file, number, source, stage) {
    Object.assign(this, { file, number, source, stage });
  }

  async load() {
    const holder = element("div", { id: "panels" });
    this.stage.replaceChildren(holder);
    if (!this.file.pictures.length) {
      holder.append(element("p", { class: "quiet" }, "This kind of file has no pictures."));
    }
    for (const name of this.file.pictures) {
      const drawn = await this.source.ask("picture", { file: this.number, name, form: "png" });
      const image = element("img", { alt: `${this.file.kind}: ${name}` });
      image.src = URL.createObjectURL(drawn);
      holder.append(element("figure", {}, image, element("figcaption", {}, name)));
    }
  }
}

// Of the buttons below "Picture of this view".
export async function share(source, form, view) {
  const told = byId("share-message");
  told.textContent = "Drawing …";
  const limits = view.window
    ? { low: view.window.x[0], high: view.window.x[1], bottom: view.window.y[0], top: view.window.y[1] }
    : {};
  const asked = {
    file: view.number, name: byId("figure").value, form: form === "py" ? "pdf" : form, ...limits,
  };
  const stem = view.file.name.replace(/\.[^.]*$/, "");
  try {
    if (form === "py") {
      const { script } = await source.ask("script", asked);
      save(`${stem}.py`, new Blob([script], { type: "text/x-python" }));
    } else save(`${stem}.${form}`, await source.ask("picture", asked));
    told.textContent = "";
  } catch (error) {
    told.textContent = error.message;
  }
}
