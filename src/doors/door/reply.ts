import type { ServerResponse } from 'node:http'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'

const json = 'application/json; charset=utf-8'
const plain = 'text/plain; charset=utf-8'

/** An answer in the making: its head is written once, together with the body if that is whole. */
export class Reply {
  readonly raw: ServerResponse
  /** The status of what a handler returns. */
  status = 200
  /** Names and values in turn. */
  readonly #headers: string[] = []

  constructor(raw: ServerResponse) {
    this.raw = raw
  }

  header(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  /** Sends a whole body; nothing if something was sent already. Texts go without known secrets. */
  send(status: number, type: string, body: string | Uint8Array): void {
    if (this.raw.headersSent) return
    const shown = typeof body === 'string' ? withoutSecretsInJson(body) : body
    const length = Buffer.byteLength(shown)
    this.#headers.push('content-type', type, 'content-length', String(length))
    this.raw.writeHead(status, this.#headers)
    this.raw.end(shown)
  }

  /** Sends what a handler returned: plain data as JSON, a text as it is, or no body. */
  give(value: unknown): void {
    if (this.raw.headersSent) return
    if (value === undefined) this.empty(this.status)
    else if (typeof value === 'string') this.send(this.status, plain, value)
    else this.send(this.status, json, JSON.stringify(value))
  }

  /** Answers without a body. */
  empty(status: number): void {
    if (status !== 204) this.#headers.push('content-length', '0')
    this.raw.writeHead(status, this.#headers)
    this.raw.end()
  }

  /** Begins a stream, which `raw` takes from then on. */
  begin(type: string): void {
    this.#headers.push('content-type', type, 'cache-control', 'no-cache')
    this.raw.writeHead(200, this.#headers)
  }
}
