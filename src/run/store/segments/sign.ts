import { createHash, createHmac } from 'node:crypto'

/** Who asks, and where: what AWS's own programs read from variables. */
export interface Credentials {
  readonly key: string
  readonly secret: string
  /** Of temporary credentials. */
  readonly token?: string
  readonly region: string
}

/** A request to be signed. */
export interface Signed {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly url: URL
  /** Headers that are signed besides its host. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
}

/** The headers of a request with its signature (AWS Signature Version 4, for S3). */
export function sign(
  { method, url, headers = {}, body = Buffer.of() }: Signed,
  { key, secret, token, region }: Credentials,
  now: Date,
): Readonly<Record<string, string>> {
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const all: Readonly<Record<string, string>> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': digest(body),
    'x-amz-date': time,
    ...(token !== undefined && { 'x-amz-security-token': token }),
  }
  const names = Object.keys(all).sort()
  const listed = names.join(';')
  const lines = names.map(name => `${name}:${all[name]!.trim()}\n`).join('')
  const parts = [method, url.pathname, '', lines, listed, all['x-amz-content-sha256']!]
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', time, scope, digest(parts.join('\n'))].join('\n')
  const signing = [day, region, 's3', 'aws4_request'].reduce(hmac, Buffer.from(`AWS4${secret}`))
  const signature = hmac(signing, text).toString('hex')
  const authorization = `AWS4-HMAC-SHA256 Credential=${key}/${scope},SignedHeaders=${listed},Signature=${signature}`
  const { host: _, ...sent } = all
  return { ...sent, authorization }
}

const digest = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
