import type { ServerResponse } from 'node:http'
import { withoutSecretsInJson } from '../../base/core/process/secrets.ts'

/** An answer in the making: its head is written once, together with the body where that is whole. */
export class DirectReply {
  readonly raw: ServerResponse
  /** Names and values in turn. */
  readonly #headers: string[]

  constructor(raw: ServerResponse, headers: readonly string[] = []) {
    this.raw = raw
    this.#headers = [...headers]
  }

  header(name: string, value: string): void {
    this.#headers.push(name, value)
  }

  /** Sends a whole body; nothing where something was sent already. */
  send(status: number, type: string, body: string): void {
    if (this.raw.headersSent) return
    const shown = withoutSecretsInJson(body)
    const length = Buffer.byteLength(shown)
    this.#headers.push('content-type', type, 'content-length', String(length))
    this.raw.writeHead(status, this.#headers)
    this.raw.end(shown)
  }

  /** Begins a stream, which `raw` takes from then on. */
  begin(type: string): void {
    this.#headers.push('content-type', type, 'cache-control', 'no-cache')
    this.raw.writeHead(200, this.#headers)
  }
}
