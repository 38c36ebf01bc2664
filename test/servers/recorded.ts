import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import type { Foreign } from '../foreign.ts'

/** An exchange with a real server, as it was recorded. */
export interface Recorded {
  readonly line: number
  readonly version: string
  readonly what: string
  readonly method: string
  readonly path: string
  readonly request: Foreign
  /** The type of what was sent, where that is not JSON; it is then kept as base64. */
  readonly type?: string
  readonly status: number | null
  readonly headers?: { readonly 'content-type'?: string | null }
  readonly body?: string
  /** The chunks of an event stream. */
  readonly chunks?: readonly string[]
  readonly closed_by_client?: boolean
}

/** The exchanges recorded with one kind of server. */
export function readRecorded(
  server:
    | 'vllm'
    | 'vllm-cpu'
    | 'vllm-bfloat16'
    | 'vllm-images'
    | 'vllm-images-chat'
    | 'vllm-forms'
    | 'sglang'
    | 'sglang-gpu'
    | 'llama-cpp'
    | 'transformers'
    | 'tuft'
    | 'twinkle',
) {
  const url = new URL(`../fixtures/servers/${server}.jsonl.gz`, import.meta.url)
  const lines = gunzipSync(readFileSync(url)).toString('utf8').trimEnd().split('\n')
  return lines.map(line => JSON.parse(line) as Recorded)
}

/**
 * A server that answers each request with what a real one answered to it, in the recorded order. An
 * exchange whose request was taken out answers any.
 */
export async function serveRecorded(exchanges: readonly Recorded[]) {
  const left = [...exchanges]
  const unknown: unknown[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', piece => pieces.push(piece))
    request.on('end', () => {
      const sent = readSent(Buffer.concat(pieces), request.headers['content-type'])
      const at = left.findIndex(
        each =>
          each.method === request.method &&
          each.path === request.url &&
          (each.request === undefined || isSame(each.request, sent)),
      )
      if (at < 0) {
        unknown.push({ path: request.url, sent })
        response.writeHead(599).end('nothing recorded for this request')
        return
      }
      const [found] = left.splice(at, 1)
      const told = found!.headers?.['content-type'] ?? 'application/json'
      const type = found!.chunks ? 'text/event-stream' : told
      response.writeHead(found!.status!, { 'content-type': type })
      for (const chunk of found!.chunks ?? []) response.write(chunk)
      response.end(Buffer.from(found!.body ?? '', isProtobuf(type) ? 'base64' : 'utf8'))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests that no real server was asked. */
    unknown,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

const isProtobuf = (type: string | undefined): boolean => type?.includes('protobuf') === true

function readSent(whole: Buffer, type: string | undefined): unknown {
  if (isProtobuf(type)) return whole.toString('base64')
  return whole.length === 0 ? null : JSON.parse(whole.toString('utf8'))
}

/** Equal but for what names a request or its model. */
function isSame(recorded: unknown, sent: unknown): boolean {
  return JSON.stringify(plain(recorded)) === JSON.stringify(plain(sent))
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([name]) => name !== 'rid' && name !== 'model')
  return Object.fromEntries(
    fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, plain(v)]),
  )
}
