// Pictures of the package: of what is in view.

import { byId, save } from "./text.js";

// Of the buttons below "Picture of this view".
export async function share(source, form, view) {
  const told = byId("share-message");
  told.textContent = "Drawing …";
  const limits = view.window
    ? { low: view.window.x[0], high: view.window.x[1], bottom: view.window.y[0], top: view.window.y[1] }
    : {};
  const asked = {
    file: view.number, name: view.picture ?? "", chosen: view.chosen ?? {}, form: form === "py" ? "pdf" : form, ...limits,
  };
  if (view.isBetween) {
    told.textContent = "This point is in no file: choose stored values for a picture.";
    return;
  }
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
