import type { FastifyReply } from 'fastify'

/** Answers with server-sent events, then `[DONE]`; an error midway is the last event. */
export async function sendEvents(
  reply: FastifyReply,
  work: (send: (event: unknown) => void) => Promise<void>,
): Promise<FastifyReply> {
  reply.hijack()
  const { raw } = reply
  raw.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  try {
    await work(event => raw.write(`data: ${JSON.stringify(event)}\n\n`))
  } catch (cause) {
    const error = { message: (cause as Error).message, type: 'internal', code: 500 }
    raw.write(`data: ${JSON.stringify({ error })}\n\n`)
  }
  raw.end('data: [DONE]\n\n')
  return reply
}
