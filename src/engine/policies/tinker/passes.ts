import type { Call } from '../../../base/core/call.ts'
import type { TinkerApi } from './api.ts'
import {
  type ForwardBackward,
  type ForwardBackwardOutput,
  forwardBackwardJson,
  forwardBackwardOf,
  readForwardBackward,
  writeForwardBackward,
} from './messages.ts'
import { requestId, TinkerError, type TinkerRequest } from './request.ts'

/** Passes over data, forward or forward and backward. */
export interface Passes {
  run(pass: ForwardBackward, call: Call): Promise<ForwardBackwardOutput>
}

const path = 'forward_backward'

/**
 * Passes as protobuf, which Tinker and TuFT want, or as JSON, if a server knows nothing else: the
 * first pass finds out which.
 */
export function makePasses({
  api,
  zstd,
}: {
  readonly api: TinkerApi
  readonly zstd: boolean
}): Passes {
  let encoding: 'protobuf' | 'json' | undefined
  const asJson = (pass: ForwardBackward): TinkerRequest => ({
    path: pass.forwardOnly ? 'forward' : path,
    body: forwardBackwardJson(pass),
  })
  const asProtobuf = (pass: ForwardBackward): TinkerRequest => ({
    path,
    body: { protobuf: writeForwardBackward(pass), zstd },
  })
  async function submitFirst(pass: ForwardBackward, call: Call): Promise<string> {
    try {
      const id = requestId(path, await api.send(asProtobuf(pass), call))
      encoding = 'protobuf'
      return id
    } catch (refused) {
      call.signal.throwIfAborted()
      if (!isRefusal(refused)) return await api.submit(asProtobuf(pass), call)
      const id = await api.submit(asJson(pass), call).catch(error => {
        // The server refuses JSON too, so the first error was the real one.
        throw isCode(error, 415) ? refused : error
      })
      encoding = 'json'
      return id
    }
  }
  return {
    async run(pass, call) {
      const submit = (): Promise<string> => {
        if (encoding === undefined) return submitFirst(pass, call)
        return api.submit(encoding === 'json' ? asJson(pass) : asProtobuf(pass), call)
      }
      const answer = await api.resultOf({ path, submit, protobuf: true }, call)
      return answer instanceof Uint8Array ? readForwardBackward(answer) : forwardBackwardOf(answer)
    },
  }
}

/** Errors of servers that do not read protobuf: some say so, others fail while parsing it. */
function isRefusal(error: unknown): boolean {
  return [400, 415, 422, 500, 501].some(code => isCode(error, code))
}

function isCode(error: unknown, code: number): boolean {
  return error instanceof TinkerError && error.code === code
}
