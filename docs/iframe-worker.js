// The search runs in a Worker, which browsers refuse to start from a file: there its script runs in a hidden frame instead.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent('message', { data }));
      const script = frame.contentDocument.createElement('script');
      script.src = new URL(address, location.href);
      this.ready = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
      this.inside = inside;
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent('message', { data })));
    }

    set onmessage(listener) {
      this.addEventListener('message', listener);
    }

    terminate() {}
  };
}
