import type { Dispatcher } from 'undici'
import { readBounded } from '../../../base/core/process/bounded.ts'

/** A hub, and the key it is shown. */
export interface Hub {
  /** Its address. */
  readonly hub: string
  /** For private models; it is sent to no other server. */
  readonly key?: string
}

/** An answer, after redirects, and where it came from in the end. */
export interface Answer {
  readonly url: URL
  readonly status: number
  readonly headers: Dispatcher.ResponseData['headers']
  readonly body: Dispatcher.ResponseData['body']
}

/** How something is asked for. */
export interface Asking {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

const mostRedirects = 5
/** Milliseconds without an answer, and without a byte of one. */
const patience = 60_000

/** The address of a hub without a slash at its end. */
export function hubAddress({ hub }: Hub): string {
  return hub.replace(/(?<!\/)\/+$/, '')
}

/** Gets an address, follows redirects, and shows the key to the hub alone. */
export async function getFollowed(address: string, hub: Hub, asking: Asking = {}): Promise<Answer> {
  let url = new URL(address)
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const { statusCode: status, headers, body } = await get(url, hub, asking)
    const location = status >= 300 && status < 400 ? headers.location : undefined
    if (location === undefined) return { url, status, headers, body }
    await body.dump()
    url = new URL(String(location), url)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new Error(`GET ${address} was redirected to ${url.protocol}, which is not followed`)
    }
  }
  throw new Error(`GET ${address} was redirected more than ${mostRedirects} times`)
}

async function get(
  url: URL,
  { hub, key }: Hub,
  { headers = {}, signal }: Asking,
): Promise<Dispatcher.ResponseData> {
  const isHub = url.origin === new URL(hub).origin
  const authorization = key !== undefined && isHub ? { authorization: `Bearer ${key}` } : {}
  try {
    const { request } = await import('undici')
    return await request(url, {
      ...(signal && { signal }),
      headersTimeout: patience,
      bodyTimeout: patience,
      headers: { ...headers, ...authorization },
    })
  } catch (cause) {
    signal?.throwIfAborted()
    const { message, code } = cause as NodeJS.ErrnoException
    throw new Error(`${url.origin} does not answer: ${message || code}`, { cause })
  }
}

/** What an answer that is none means. */
export function refusal({ url, status }: Pick<Answer, 'url' | 'status'>): Error {
  const hint =
    status === 401 || status === 403
      ? ': the name may be wrong, or the model is not open to everyone and HF_TOKEN is missing'
      : ''
  return new Error(`GET ${url.origin}${url.pathname} answered ${status}${hint}`)
}

/** Reads a body that has to fit into memory. */
export async function readBody(
  { url, body }: Pick<Answer, 'url' | 'body'>,
  most: number,
): Promise<Buffer> {
  return await readBounded(body, most).catch((cause: Error) => {
    throw new Error(`GET ${url.origin}${url.pathname}: ${cause.message}`, { cause })
  })
}
