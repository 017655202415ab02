// The stretch of time that all charts of a page show together, and the moment that is read off.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const LEAST_S = 0.01;
  const AROUND_S = 0.3;
  const INJECTION_S = 0.15;

  /**
   * A view of `from` to `to` seconds. Charts listen with `on`; whatever moves it goes through `show` or `point`.
   * `speed`: how many times faster than usual all was, so that shorter times are looked at.
   */
  Testbed.timeView = (from, to, speed = 1) => {
    const [least, around, injection] = [LEAST_S / speed, AROUND_S / speed, INJECTION_S / speed];
    Testbed.readTimesOf(to - from);
    const whole = { from, to: Math.max(to, from + least) };
    const listeners = [];
    const view = { whole, from: whole.from, to: whole.to, cursor: null };
    const tell = (moved) => listeners.forEach((listener) => listener(view, moved));

    view.on = (listener) => listeners.push(listener);
    view.span = () => view.to - view.from;
    view.isWhole = () => view.from === whole.from && view.to === whole.to;
    view.show = (begin, end) => {
      const span = Math.min(Math.max(end - begin, least), whole.to - whole.from);
      view.from = Math.min(Math.max(begin, whole.from), whole.to - span);
      view.to = view.from + span;
      tell(true);
    };
    view.reset = () => view.show(whole.from, whole.to);
    view.pan = (share) => view.show(view.from + share * view.span(), view.to + share * view.span());
    /** `factor` below 1 looks closer; the moment `at` stays where it is. */
    view.zoom = (factor, at = (view.from + view.to) / 2) =>
      view.show(at - (at - view.from) * factor, at + (view.to - at) * factor);
    /** A fault {from, to} with a little time around it; shown already, its injection. */
    view.around = (fault) => {
      const end = fault.to ?? whole.to;
      const pad = Math.max(around, (end - fault.from) / 10);
      const [from, to] = [fault.from - pad, end + pad];
      const shown = view.from >= from - 1e-9 && view.to <= to + 1e-9;
      if (shown) view.show(fault.from - injection, fault.from + 3 * injection);
      else view.show(from, to);
    };
    /** Read off the moment `t`; null: none. */
    view.point = (t) => {
      view.cursor = t === null ? null : Math.min(Math.max(t, whole.from), whole.to);
      if (view.cursor !== null && (view.cursor < view.from || view.cursor > view.to)) {
        view.show(view.cursor - view.span() / 2, view.cursor + view.span() / 2);
      } else {
        tell(false);
      }
    };
    return view;
  };
})();
