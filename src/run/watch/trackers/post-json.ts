import { parseBounded, readBounded } from '../../../base/core/process/bounded.ts'
import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'

/** Milliseconds after which a tracker counts as away. */
const patience = 15_000

/** Most bytes of an answer. */
const mostBytes = 4 * 2 ** 20

/** Most characters of an answer that an error repeats. */
const mostShown = 200

/** Sends JSON and reads JSON; anything but success is an error that says what the server said. */
export async function sendJson(
  url: string,
  {
    headers,
    ...request
  }: {
    readonly method: 'GET' | 'POST'
    readonly headers: Readonly<Record<string, string>>
    readonly body?: unknown
  },
): Promise<unknown> {
  const response = await fetch(url, {
    method: request.method,
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
    ...(request.body !== undefined && { body: jsonWithoutSecrets(request.body) }),
    redirect: 'error',
    signal: AbortSignal.timeout(patience),
  })
  const text = (await readBounded(response.body, mostBytes)).toString('utf8')
  if (!response.ok)
    throw new Error(`${new URL(url).host} answered ${response.status}: ${text.slice(0, mostShown)}`)
  return text === '' ? {} : parseBounded(text)
}
