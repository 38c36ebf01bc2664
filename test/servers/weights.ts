import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Recorded, readRecorded } from './recorded.ts'

/** An engine whose weights can be changed: answers are those that real ones gave, names are live. */
export async function serveWeights(
  engine: 'sglang' | 'vllm',
  options: { readonly forgets?: boolean } = {},
) {
  const recorded = [...readRecorded(engine), ...(engine === 'vllm' ? readRecorded('vllm-cpu') : [])]
  const asked: string[] = []
  const bodies: Readonly<Record<string, unknown>>[] = []
  let version = 'default'
  const answerTo = (path: string, status = 200): Recorded | undefined =>
    recorded.find(
      each => [path, path.replace('?mode=wait', '')].includes(each.path) && each.status === status,
    )
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', piece => pieces.push(piece))
    request.on('end', () => {
      const path = request.url!
      const text = Buffer.concat(pieces).toString()
      const body = text === '' ? {} : JSON.parse(text)
      asked.push(path)
      bodies.push(body)
      const isMissing = String(body.model_path).endsWith('missing')
      if (!isMissing && !options.forgets)
        version = body.new_version ?? body.weight_version ?? version
      const sample = path === '/generate' || path.startsWith('/inference')
      const known = sample
        ? recorded.find(each => each.path === path && each.status === 200 && each.body)
        : answerTo(path.replace('?mode=abort', '?mode=wait'), isMissing ? 400 : 200)
      // SGLang's adapters: no answer of those was recorded, so they give what their handlers return.
      const told = known?.body ?? '{"success":true}'
      response.writeHead(known?.status ?? 200, { 'content-type': 'application/json' })
      response.end(told.replace(/"weight_version":"[^"]*"/, `"weight_version":"${version}"`))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
