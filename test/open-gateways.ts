import type { ModelRenderer } from '@espalier/text/chat'
import { afterEach } from 'vitest'
import type { Policy } from '../src/base/core/policy.ts'
import { openCountingPolicy } from './counting-policy.ts'
import { openTestGateway, type TestGatewayOptions } from './gateway.ts'
import { openByteRenderer, script } from './rolling.ts'

type TestGateway = Awaited<ReturnType<typeof openTestGateway>>

const opened: TestGateway[] = []

afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway[Symbol.asyncDispose]()
})

/** A gateway over a policy, closed when the test ends. */
export async function openOver(
  policyOf: (renderer: ModelRenderer) => Policy,
  options: Partial<TestGatewayOptions> = {},
): Promise<TestGateway> {
  const renderer = await openByteRenderer()
  const gateway = await openTestGateway({ policy: policyOf(renderer), renderer, ...options })
  opened.push(gateway)
  return gateway
}

/** A gateway whose model says these texts, one after the other. */
export const openSaying = (texts: readonly string[], options: Partial<TestGatewayOptions> = {}) =>
  openOver(
    renderer =>
      script(
        renderer,
        texts.map(text => ({ text: `${text}<|im_end|>` })),
      ),
    options,
  )

/** A gateway whose model says five tokens, each answer after a delay. */
export const openCounting = (
  delay: () => number,
  options: Partial<TestGatewayOptions> = {},
): Promise<TestGateway> =>
  openOver(
    renderer => openCountingPolicy({ length: () => 5, delay, end: renderer.stopIds[0]! }).policy,
    options,
  )

export const hello = { model: 'm', messages: [{ role: 'user', content: 'hello' }] }
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
