import type { ServerOptions, ServerRequest } from './server.ts'

/** The header by which routers of several engines keep the requests of one tree together, where its prefix is cached. */
const sessionHeader = 'X-Session-ID'

/** What a URI's `session` may be: the name of a header, or `body:` and the name of a field, its parts joined by points. */
export const sessionPattern = /^(?:body:[\w-]+(?:\.[\w-]+)*|[\w-]+)$/

/** A request that tells its session: by the header of routers, another one, or a field of its body. */
export function withSession<Request extends ServerRequest>(
  request: Request,
  session: string | undefined,
  { session: key = sessionHeader }: Pick<ServerOptions, 'session'>,
): Request {
  if (session === undefined || session === '') return request
  const value = encodeURIComponent(session)
  if (!key.startsWith('body:')) {
    return { ...request, headers: [...(request.headers ?? []), key, value] }
  }
  const [field, ...inner] = key.slice('body:'.length).split('.')
  const nested = inner.reduceRight<unknown>((within, name) => ({ [name]: within }), value)
  const added = `,${JSON.stringify({ [field!]: nested }).slice(1)}`
  const body = Buffer.from(request.body ?? '{}')
  return {
    ...request,
    body: Buffer.concat([body.subarray(0, body.lastIndexOf('}')), Buffer.from(added)]),
  }
}
