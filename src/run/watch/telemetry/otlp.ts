import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'

/** A value that an attribute can have. */
export type AttributeValue = string | number | boolean | readonly string[]

/** A piece of work with a beginning and an end, as OpenTelemetry has it. */
export interface Span {
  readonly trace: string
  readonly id: string
  readonly parent?: string
  readonly name: string
  readonly kind: 'internal' | 'client'
  /** Milliseconds since 1970. */
  readonly start: number
  readonly end: number
  readonly attributes: Readonly<Record<string, AttributeValue | undefined>>
  /** What went wrong, if something did. */
  readonly error?: string
}

const kinds = { internal: 1, client: 3 } as const

/** Spans as the body of a request: OTLP 1 in its JSON encoding, ids in hex, times as text. */
function toOtlp(
  spans: readonly Span[],
  resource: Readonly<Record<string, AttributeValue>>,
): object {
  const scope = { name: 'espalier', version: String(resource['service.version'] ?? '') }
  return {
    resourceSpans: [
      {
        resource: { attributes: toAttributes(resource) },
        scopeSpans: [{ scope, spans: spans.map(toSpan) }],
      },
    ],
  }
}

function toSpan(span: Span): object {
  return {
    traceId: span.trace,
    spanId: span.id,
    ...(span.parent !== undefined && { parentSpanId: span.parent }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: nanoseconds(span.start),
    endTimeUnixNano: nanoseconds(span.end),
    attributes: toAttributes(span.attributes),
    status: span.error === undefined ? {} : { code: 2, message: span.error },
  }
}

/** Larger than 2^53, so it is built as text. */
function nanoseconds(milliseconds: number): string {
  const whole = Math.floor(milliseconds)
  const part = Math.floor((milliseconds - whole) * 1e6)
  return `${whole}${String(part).padStart(6, '0')}`
}

function toAttributes(values: Readonly<Record<string, AttributeValue | undefined>>): object[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: toValue(value) }],
  )
}

function toValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') {
    return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  return { arrayValue: { values: value.map(stringValue => ({ stringValue })) } }
}

/** Sends spans to a collector in the background. */
export interface SpanExporter extends AsyncDisposable {
  add(span: Span): void
  /** Spans that were sent, and those that were given up. */
  readonly counts: { readonly sent: number; readonly lost: number }
}

/** Where spans go. */
export interface ExporterOptions {
  /** The collector; `/v1/traces` is added if the path does not end with it. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, AttributeValue>>
  /** Seconds between two requests. @default 2 */
  readonly every?: number
}

const mostWaiting = 8192
const batchSize = 512

/** Opens an exporter. A collector that is slow or gone loses spans, never the run. */
export function openExporter(options: ExporterOptions): SpanExporter {
  const { every = 2, resource, headers } = options
  const url = options.url.endsWith('/v1/traces')
    ? options.url
    : `${options.url.replace(/\/$/, '')}/v1/traces`
  const waiting: Span[] = []
  const counts = { sent: 0, lost: 0 }
  let sending: Promise<void> | undefined

  async function sendBatch(): Promise<void> {
    const batch = waiting.splice(0, batchSize)
    const body = jsonWithoutSecrets(toOtlp(batch, resource))
    for (let attempt = 0; attempt < 3; attempt++) {
      const result = await post(url, body, headers)
      if (result === 'taken') {
        counts.sent += batch.length
        return
      }
      if (result === 'refused') break
      await new Promise(resolve => setTimeout(resolve, 200 * 2 ** attempt))
    }
    counts.lost += batch.length
  }
  async function sendAll(): Promise<void> {
    while (waiting.length > 0) await sendBatch()
    sending = undefined
  }
  const flush = (): Promise<void> => {
    sending ??= sendAll()
    return sending
  }
  const timer = setInterval(() => void flush(), every * 1000)
  timer.unref()

  return {
    counts,
    add(span) {
      if (waiting.length >= mostWaiting) counts.lost++
      else waiting.push(span)
      if (waiting.length >= batchSize) void flush()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await Promise.race([flush(), new Promise(resolve => setTimeout(resolve, 5000).unref())])
    },
  }
}

/** Busy collectors are tried again, as the protocol asks; other refusals are final. */
async function post(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<'taken' | 'refused' | 'later'> {
  try {
    const { request } = await import('undici')
    const { statusCode, body: answer } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      signal: AbortSignal.timeout(10_000),
    })
    await answer.dump()
    if (statusCode >= 200 && statusCode < 300) return 'taken'
    return [429, 502, 503, 504].includes(statusCode) ? 'later' : 'refused'
  } catch {
    return 'later'
  }
}
