import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { openSglangServer } from '../../../../../test/servers/sglang.ts'
import {
  expectTokens,
  sampleRequest,
} from '../../../../base/core/conformance/policy.conformance.ts'
import { builtFile } from '../../../../base/core/process/package-folder.ts'
import { openSglang } from '../../servers/sglang.ts'
import { openServerThread } from './thread.ts'

const call = () => ({ signal: AbortSignal.timeout(50_000) })

function watchedThread() {
  const workers: Worker[] = []
  const thread = openServerThread(() => {
    const worker = new Worker(builtFile('engine/policies/transport/thread/worker.js'), {
      execArgv: [],
    })
    workers.push(worker)
    return worker
  })
  return { workers, thread }
}

describe('server thread', () => {
  it('fails what was under way when it dies, and goes on in another one', async () => {
    const { workers, thread } = watchedThread()
    let isHeld = true
    await using server = await openSglangServer({ fault: () => (isHeld ? 'hang' : undefined) })
    await using policy = openSglang(server.url, { thread })
    const held = policy.sample(sampleRequest(), call())
    const refused = expect(held).rejects.toMatchObject({ problem: 'connection' })
    while (server.seen.length === 0) await new Promise(resolve => setImmediate(resolve))
    await workers[0]!.terminate()
    await refused
    isHeld = false
    expectTokens(await policy.sample(sampleRequest(), call()))
    expect(workers).toHaveLength(2)
  })

  it('is one for several servers, starts with a request, and ends with the last of them', async () => {
    const { workers, thread } = watchedThread()
    await using server = await openSglangServer()
    const policies = [openSglang(server.url, { thread }), openSglang(server.url, { thread })]
    expect(workers).toHaveLength(0)
    for (const policy of policies) expectTokens(await policy.sample(sampleRequest(), call()))
    expect(workers).toHaveLength(1)
    const ended = new Promise(resolve => workers[0]!.once('exit', resolve))
    await policies[0]![Symbol.asyncDispose]()
    expectTokens(await policies[1]!.sample(sampleRequest(), call()))
    await policies[1]![Symbol.asyncDispose]()
    await ended
    await expect(policies[1]!.sample(sampleRequest(), call())).rejects.toThrow('were closed')
  })
})
