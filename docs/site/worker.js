// Search in pages that are opened as files, for which browsers start no worker: in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.onmessage?.({ data: structuredClone(data) });
      const script = this.inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.ready = new Promise((resolve) => { script.onload = resolve; });
      script.onerror = (event) => this.onerror?.(event);
      this.inside.document.documentElement.append(script);
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data: copy })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
