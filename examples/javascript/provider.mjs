// A schedule provider in JavaScript, without dependencies: DailySchedule, from one time of day until another, in UTC.
//
//   kubectl apply -f crd.yaml
//   kubectl proxy --port 8001 &
//   KUBERNETES_API=http://127.0.0.1:8001 node provider.mjs
//
// In a cluster it uses the token of its service account; set NODE_EXTRA_CA_CERTS to the ca.crt beside the token.
import { readFile } from "node:fs/promises";

const GROUP = "spotschedules.5spot.finos.org/v1alpha1";
const PLURAL = "dailyschedules";
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const DAY = 24 * 60 * 60 * 1000;
const LONGEST_TIMER = DAY;
const RETRY = 1000;

// -- the decision: pure -------------------------------------------------------------------------------------------

/** Return {active, until, reason, message} at an instant, or {invalid} with what is wrong with the spec. */
export function decide(spec, at) {
  const opens = minutes(spec.opens);
  const closes = minutes(spec.closes);
  if (opens === closes) {
    return { invalid: `spec.closes: must differ from spec.opens, both are ${spec.opens}; all day is 00:00 to 24:00` };
  }
  const end = spec.validUntil === undefined ? Infinity : Date.parse(spec.validUntil);
  if (at >= end) return { active: false, until: null, reason: "Expired", message: "after spec.validUntil" };
  const allDay = closes - opens === 24 * 60;
  const midnight = Math.floor(at / DAY) * DAY;
  const changes = [0, 1].flatMap((day) => [
    { at: midnight + day * DAY + opens * 60_000, active: true },
    { at: midnight + day * DAY + closes * 60_000, active: false },
  ]);
  const next = changes.filter((change) => change.at > at).sort((a, b) => a.at - b.at)[0];
  const active = allDay || !next.active;
  let until = allDay ? Infinity : next.at;
  if (active) until = Math.min(until, end);
  else if (until >= end) until = Infinity; // It does not open any more.
  return {
    active,
    until: Number.isFinite(until) ? until : null,
    reason: active ? "Open" : "Closed",
    message: active ? `open from ${spec.opens} to ${spec.closes} UTC` : `opens at ${spec.opens} UTC`,
  };
}

function minutes(text) {
  const [hour, minute] = text.split(":").map(Number);
  return hour * 60 + minute;
}

/** Return the status that an object should have: what is not ours, and what is right already, stays as it is. */
export function statusFor(object, at) {
  const old = object.status ?? {};
  const found = decide(object.spec, at);
  // Without a verdict, active stays as it was: false would remove running machines.
  const active = found.invalid ? old.active === true : found.active;
  const ready = found.invalid
    ? { type: "Ready", status: "False", reason: "InvalidSpec", message: found.invalid }
    : { type: "Ready", status: "True", reason: found.reason, message: found.message };
  const before = (old.conditions ?? []).find((condition) => condition.type === "Ready");
  ready.lastTransitionTime = before?.status === ready.status ? before.lastTransitionTime : instant(at);
  return {
    ...old,
    active,
    observedGeneration: object.metadata.generation,
    lastTransitionTime: old.active === active && old.lastTransitionTime ? old.lastTransitionTime : instant(at),
    nextTransitionTime: found.until ? instant(found.until) : null,
    conditions: [...(old.conditions ?? []).filter((condition) => condition.type !== "Ready"), ready],
  };
}

function instant(at) {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

function same(one, other) {
  if (one === other || (one == null && other == null)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => same(one[name], other[name]));
}

// -- the controller -----------------------------------------------------------------------------------------------

const objects = new Map(); // uid -> the newest state that was seen
const timers = new Map(); // uid -> the timer of its next boundary, or of another try

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/merge-patch+json";
  let server = process.env.KUBERNETES_API;
  if (!server) {
    server = `https://${process.env.KUBERNETES_SERVICE_HOST}:${process.env.KUBERNETES_SERVICE_PORT}`;
    // Read each time, because the token is replaced.
    headers.Authorization = `Bearer ${(await readFile(`${ACCOUNT}/token`, "utf8")).trim()}`;
  }
  return fetch(server + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

async function reconcile(uid) {
  clearTimeout(timers.get(uid));
  timers.delete(uid);
  const object = objects.get(uid);
  if (!object || object.metadata.deletionTimestamp) return;
  const now = Date.now();
  const wanted = statusFor(object, now);
  if (!same(object.status ?? {}, wanted)) {
    const { name, namespace, resourceVersion } = object.metadata;
    try {
      const path = `/apis/${GROUP}/namespaces/${namespace}/${PLURAL}/${name}/status`;
      const response = await call("PATCH", path, { metadata: { resourceVersion }, status: wanted });
      // 409: it has changed since, and the change is on its way. 404: it is gone.
      if (!response.ok && ![404, 409].includes(response.status)) throw new Error(await response.text());
    } catch (error) {
      console.error(`${namespace}/${name}: ${error.message}`);
      timers.set(uid, setTimeout(reconcile, RETRY, uid));
      return;
    }
  }
  const next = wanted.nextTransitionTime ? Date.parse(wanted.nextTransitionTime) - now : LONGEST_TIMER;
  // A millisecond later, because timers may be early.
  if (!timers.has(uid)) timers.set(uid, setTimeout(reconcile, Math.min(Math.max(next + 1, 0), LONGEST_TIMER), uid));
}

async function follow() {
  const path = `/apis/${GROUP}/${PLURAL}`;
  const response = await call("GET", path);
  if (!response.ok) throw new Error(await response.text());
  const list = await response.json();
  const present = new Set(list.items.map((item) => item.metadata.uid));
  for (const uid of objects.keys()) if (!present.has(uid)) forget(uid);
  for (const item of list.items) seen(item);
  let version = list.metadata.resourceVersion;
  for (;;) {
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=${version}`;
    const stream = await call("GET", `${path}?${query}`);
    if (!stream.ok) throw new Error(await stream.text());
    for await (const event of lines(stream.body)) {
      if (event.type === "ERROR") throw new Error(event.object.message); // 410: list again
      version = event.object.metadata.resourceVersion;
      if (event.type === "DELETED") forget(event.object.metadata.uid);
      else if (event.type !== "BOOKMARK") seen(event.object);
    }
  }
}

function seen(object) {
  objects.set(object.metadata.uid, object);
  void reconcile(object.metadata.uid);
}

function forget(uid) {
  objects.delete(uid);
  clearTimeout(timers.get(uid));
  timers.delete(uid);
}

async function* lines(body) {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    const complete = text.split("\n");
    text = complete.pop();
    for (const line of complete) if (line) yield JSON.parse(line);
  }
}

if (import.meta.url === new URL(process.argv[1], "file:").href) {
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
  for (;;) {
    try {
      await follow();
    } catch (error) {
      console.error(`watching again: ${error.message}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  }
}
