import { openServer, type Server } from '../servers/server.ts'
import type { Exchange } from './exchange.ts'
import type { ServerThread } from './thread/thread.ts'

/**
 * Up to this many requests under way, the caller's own thread serves them: passing a request and its
 * answer between threads then costs more than it saves. `npm run bench -- thread` shows it.
 */
const few = 2

/** A thread that is used under load only: a few requests at a time are faster without it. */
export function byLoad(thread: ServerThread): ServerThread {
  return {
    open(address, options) {
      const { thread: _thread, ...plain } = options
      const here = openServer(address, plain)
      const away = thread.open(address, options)
      let underWay = 0
      const over = (): void => {
        underWay--
      }
      const counted = <Answer>(start: (server: Server) => Exchange<Answer>): Exchange<Answer> => {
        const exchange = start(underWay < few ? here : away)
        underWay++
        exchange.answer.then(over, over)
        return exchange
      }
      return {
        url: here.url,
        start: request => counted(server => server.start(request)),
        startRead: (request, reading) => counted(server => server.startRead(request, reading)),
        async [Symbol.asyncDispose]() {
          await Promise.all([here[Symbol.asyncDispose](), away[Symbol.asyncDispose]()])
        },
      }
    },
  }
}
