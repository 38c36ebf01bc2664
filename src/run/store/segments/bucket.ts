import { SettingError } from '../../../base/core/names/setting-error.ts'
import { readBounded } from '../../../base/core/process/bounded.ts'
import { keepSecret, withoutSecrets } from '../../../base/core/process/secrets.ts'
import { fetchNow } from './fetch-now.ts'
import { type Credentials, type Signed, sign } from './sign.ts'
import type { RunStorage, SegmentWriter } from './storage.ts'

/** A segment is sealed with so many bytes, or so many milliseconds after its first. */
const [mostBytes, longest] = [8 << 20, 5000]
/** Bytes that an answer which refuses may have. */
const errorBytes = 2 ** 16
/** Milliseconds that one request may take. */
const patience = 60_000

/** Segments in a bucket of S3, or of what speaks its protocol (`AWS_ENDPOINT_URL`): each an object that is written once. */
export function openBucket(address: string): RunStorage {
  const bucket = new Bucket(address)
  return {
    isFar: true,
    write: name => new BucketSegment(bucket, name),
    read: (segment, offset, size) => bucket.get(segment, offset, size),
    readNow: (segment, offset, size) => bucket.getNow(segment, offset, size),
    remove: segment => bucket.remove(segment),
  }
}

class Bucket {
  readonly #address: string
  readonly #base: string
  readonly #credentials: Credentials

  constructor(address: string) {
    const [, name, prefix = ''] =
      /^s3:\/\/([a-z\d][a-z\d.-]+)(?:\/([\w./-]*))?$/.exec(address) ?? []
    if (name === undefined) {
      throw new SettingError(`--segments ${address}: a bucket is named as s3://BUCKET/PREFIX`)
    }
    this.#address = address
    this.#credentials = credentialsIn(process.env)
    const { AWS_ENDPOINT_URL_S3: own, AWS_ENDPOINT_URL: other } = process.env
    const host = `https://${name}.s3.${this.#credentials.region}.amazonaws.com`
    const endpoint = own ?? other
    const root = endpoint === undefined ? host : `${endpoint.replace(/\/+$/, '')}/${name}`
    this.#base = [root, ...prefix.split('/').filter(part => part !== '')].join('/')
  }

  async put(name: string, body: Buffer): Promise<void> {
    const [url, headers] = this.#request({ method: 'PUT', url: this.#at(name), body })
    const signal = AbortSignal.timeout(patience)
    const response = await this.#asked(
      name,
      fetch(url, { method: 'PUT', headers, body: new Uint8Array(body), signal, redirect: 'error' }),
    )
    await response.body?.cancel()
    if (!response.ok) throw this.#refused(name, response.status)
  }

  async remove(name: string): Promise<void> {
    const [url, headers] = this.#request({ method: 'DELETE', url: this.#at(name) })
    const signal = AbortSignal.timeout(patience)
    const response = await this.#asked(name, fetch(url, { method: 'DELETE', headers, signal }))
    await response.arrayBuffer()
    if (!response.ok && response.status !== 404) throw this.#refused(name, response.status)
  }

  async get(name: string, offset: number, size: number): Promise<Buffer> {
    const [url, headers] = this.#request(this.#range(name, offset, size))
    const signal = AbortSignal.timeout(patience)
    const ask = () => fetch(url, { headers, signal, redirect: 'error' })
    // A connection that was closed while everything stood still is not one that the server refuses.
    const response = await this.#asked(name, ask().catch(ask))
    if (response.status === 206) return await this.#asked(name, readBounded(response.body, size))
    await response.body?.cancel()
    throw this.#refused(name, response.status)
  }

  getNow(name: string, offset: number, size: number): Buffer {
    const [url, headers] = this.#request(this.#range(name, offset, size))
    const { status, bytes } = fetchNow({
      url: url.href,
      headers,
      patience,
      most: size + errorBytes,
    })
    if (status !== 206) throw this.#refused(name, status)
    return bytes
  }

  #at(name: string): URL {
    return new URL(`${this.#base}/${name}`)
  }

  #range(name: string, offset: number, size: number): Signed {
    const headers = { range: `bytes=${offset}-${offset + size - 1}` }
    return { method: 'GET', url: this.#at(name), headers }
  }

  #request(signed: Signed): readonly [URL, Readonly<Record<string, string>>] {
    return [signed.url, sign(signed, this.#credentials, new Date())]
  }

  /** Waits for an answer; it is asked of no other server, which would be shown the credentials. */
  async #asked<T>(name: string, asking: Promise<T>): Promise<T> {
    try {
      return await asking
    } catch (cause) {
      const { message } = ((cause as Error).cause ?? cause) as Error
      throw new Error(
        `${this.#address}: ${name} could not be reached: ${withoutSecrets(message)}`,
        {
          cause,
        },
      )
    }
  }

  #refused(name: string, status: number): Error {
    const why = reasons[status] ?? 'the server refused'
    return new Error(`${this.#address}: ${name}: ${why} (${status})`)
  }
}

const reasons: Readonly<Record<number, string>> = {
  403: 'the credentials do not allow it',
  404: 'there is no such bucket or object',
  416: 'the object is shorter than that',
}

function credentialsIn(variables: NodeJS.ProcessEnv): Credentials {
  const { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret } = variables
  if (!key || !secret) {
    throw new SettingError(
      '--segments s3://…: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set; `aws configure export-credentials --format env` prints them for any way of signing in',
    )
  }
  keepSecret(secret)
  const { AWS_SESSION_TOKEN: token, AWS_REGION, AWS_DEFAULT_REGION } = variables
  if (token) keepSecret(token)
  const region = AWS_REGION ?? AWS_DEFAULT_REGION ?? 'us-east-1'
  return { key, secret, region, ...(token && { token }) }
}

/** Bytes that go into the next object. */
interface OpenSegment {
  readonly parts: Buffer[]
  size: number
  readonly sealed: Promise<string>
  readonly seal: () => void
}

class BucketSegment implements SegmentWriter {
  readonly #bucket: Bucket
  readonly #name: string
  #count = 0
  #open: OpenSegment | undefined

  constructor(bucket: Bucket, name: string) {
    this.#bucket = bucket
    this.#name = name
  }

  async append(bytes: Buffer): Promise<{ readonly segment: string; readonly offset: number }> {
    this.#open ??= this.#begin()
    const open = this.#open
    const offset = open.size
    open.parts.push(bytes)
    open.size += bytes.length
    if (open.size >= mostBytes) open.seal()
    return { segment: await open.sealed, offset }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = this.#open
    open?.seal()
    await open?.sealed.catch(() => undefined)
  }

  #begin(): OpenSegment {
    const segment = `${this.#name}-${this.#count++}.frames`
    const parts: Buffer[] = []
    let seal = (): void => {}
    const sealed = new Promise<void>(resolve => {
      const timer = setTimeout(resolve, longest)
      seal = () => {
        clearTimeout(timer)
        resolve()
      }
    }).then(async () => {
      this.#open = undefined
      await this.#bucket.put(segment, Buffer.concat(parts))
      return segment
    })
    sealed.catch(() => undefined)
    return { parts, size: 0, sealed, seal }
  }
}
