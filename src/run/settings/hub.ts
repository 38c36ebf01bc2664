import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { modelFileNames } from '@espalier/text/chat'
import type { Dispatcher } from 'undici'

/** Where a model's files are fetched from, and where they go. */
export interface FetchOptions {
  /** The address of the hub. */
  readonly hub: string
  readonly folder: string
  /** A key of the hub, for private models; it is sent to no other server. */
  readonly key?: string
}

/** Fetches the tokenizer and template files of a model into a folder, and never its weights. */
export async function fetchModel(model: string, options: FetchOptions): Promise<void> {
  const hub = options.hub.replace(/(?<!\/)\/+$/, '')
  const files: [name: string, bytes: Buffer][] = []
  for (const name of modelFileNames) {
    const bytes = await fetchFile(`${hub}/${model}/resolve/main/${name}`, options)
    if (bytes) files.push([name, bytes])
    else if (name === 'tokenizer.json') {
      throw new Error(
        `${hub} has no tokenizer.json for ${model}: is that its name there? ` +
          'Models that are only offered as a service have none',
      )
    }
  }
  await mkdir(options.folder, { recursive: true })
  // The tokenizer is written last: its presence means that the folder is complete.
  for (const [name, bytes] of files.reverse()) {
    const part = join(options.folder, `${name}.${process.pid}.part`)
    await writeFile(part, bytes)
    await rename(part, join(options.folder, name))
  }
}

const largestFile = 64 * 1024 * 1024
const mostRedirects = 5

async function fetchFile(address: string, options: FetchOptions): Promise<Buffer | undefined> {
  let url = new URL(address)
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const { statusCode, headers, body } = await get(url, options)
    const location = statusCode >= 300 && statusCode < 400 ? headers.location : undefined
    if (location === undefined && statusCode === 200) return await readBody(url, body)
    await body.dump()
    if (statusCode === 404) return undefined
    if (location === undefined) throw refusal(url, statusCode)
    url = new URL(String(location), url)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new Error(`GET ${address} was redirected to ${url.protocol}, which is not followed`)
    }
  }
  throw new Error(`GET ${address} was redirected more than ${mostRedirects} times`)
}

async function get(url: URL, { hub, key }: FetchOptions): Promise<Dispatcher.ResponseData> {
  const isHub = url.origin === new URL(hub).origin
  try {
    const { request } = await import('undici')
    return await request(url, {
      signal: AbortSignal.timeout(120_000),
      headers: key !== undefined && isHub ? { authorization: `Bearer ${key}` } : {},
    })
  } catch (cause) {
    const { message, code } = cause as NodeJS.ErrnoException
    throw new Error(`${url.origin} does not answer: ${message || code}`, { cause })
  }
}

function refusal(url: URL, status: number): Error {
  const hint =
    status === 401 || status === 403
      ? ': the name may be wrong, or the model is not open to everyone and HF_TOKEN is missing'
      : ''
  return new Error(`GET ${url.origin}${url.pathname} answered ${status}${hint}`)
}

async function readBody(url: URL, body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > largestFile) {
      throw new Error(`GET ${url.origin}${url.pathname} gives more than ${largestFile} bytes`)
    }
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
