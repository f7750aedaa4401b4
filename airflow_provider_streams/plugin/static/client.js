// Asks the routes next to this file, as the signed-in user.

const ROOT = new URL("../api/", import.meta.url);

/** An answer that is not what was asked for, in words for people. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

const KNOWN = {
  401: "Your session has ended. Sign in again to see the streams.",
  403: "Your account may not read DAGs, so there is nothing to show. Ask an administrator for the right to read them.",
};

export async function get(path, parameters = {}, signal = undefined) {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  let answer;
  try {
    // the browser sends If-None-Match by itself, and gives what it has on 304
    answer = await fetch(url, { cache: "no-cache", credentials: "same-origin", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "Airflow's server does not answer.");
  }
  if (!answer.ok) throw new Problem(answer.status, KNOWN[answer.status] ?? (await detail(answer)));
  return answer.json();
}

/** Sends JSON as the user who is signed in; `url` is one of ours, or one of Airflow's own. */
export async function post(url, body) {
  let answer;
  try {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    answer = await fetch(url, { method: "POST", credentials: "same-origin", headers, body: JSON.stringify(body) });
  } catch {
    throw new Problem(0, "Airflow's server does not answer.");
  }
  if (answer.status === 401) throw new Problem(401, KNOWN[401]);
  if (!answer.ok) throw new Problem(answer.status, await detail(answer));
  return answer.json();
}

/** A route of ours. */
export const ours = (path) => new URL(path, ROOT);
/** A route or page of Airflow's, wherever a proxy puts it. */
export const airflows = (path) => new URL(path, document.baseURI);

async function detail(answer) {
  try {
    const body = await answer.json();
    if (typeof body.detail === "string") return body.detail;
    if (Array.isArray(body.detail)) return body.detail.map((one) => one.msg ?? String(one)).join("; ");
  } catch {
    // no JSON: a proxy's page
  }
  return `The server answered ${answer.status}.`;
}

/** Runs jobs, at most `width` at a time. */
export async function inTurn(jobs, width = 4) {
  const queue = [...jobs];
  const worker = async () => {
    while (queue.length) await queue.shift()();
  };
  await Promise.all(Array.from({ length: Math.min(width, queue.length) }, worker));
}
