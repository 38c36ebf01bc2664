import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { openVllmServer } from '../../test/servers/vllm.ts'
import { answerOfSession, type Hits, PrefixCache } from './replicas.ts'

/** Replicas of a vLLM behind the real router, `vllm-router` from PyPI; their prefix caches are modelled. */
export async function openRouted(
  count: number,
  { router, tokens }: { readonly router: string; readonly tokens: number },
) {
  const ideal = new PrefixCache(Number.POSITIVE_INFINITY)
  const hits = { prompt: 0, cached: 0, ceiling: 0 }
  const open = () => {
    const cache = new PrefixCache(tokens)
    return openVllmServer({
      context: 200_000,
      remember: false,
      answer({ prompt }) {
        const ids = answerOfSession(prompt)
        hits.prompt += prompt.length
        hits.ceiling += ideal.take(prompt)
        hits.cached += cache.take(prompt)
        ideal.take([...prompt, ...ids])
        return { ids, logprobs: ids.map(() => -0.5), finish: 'stop' }
      },
    })
  }
  const replicas = await Promise.all(Array.from({ length: count }, open))
  const [port, metrics] = [await freePort(), await freePort()]
  const words = [
    '--policy',
    'consistent_hash',
    '--port',
    `${port}`,
    '--prometheus-port',
    `${metrics}`,
  ]
  const workers = ['--worker-urls', ...replicas.map(({ url }) => url)]
  const child = spawn(router, [...words, ...workers], { stdio: ['ignore', 'ignore', 'inherit'] })
  const url = `http://127.0.0.1:${port}`
  await reachable(`${url}/v1/models`, () => child.exitCode !== null)
  return {
    url: `vllm:${url}`,
    hits: hits as Hits,
    async [Symbol.asyncDispose]() {
      child.kill()
      await Promise.all(replicas.map(each => each.close()))
    },
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  return port
}

async function reachable(url: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.ok) return
    await wait(200)
  }
  throw new Error('the router has ended')
}
