import type { Environment } from '../../base/core/environment.ts'
import { splitItems } from '../../base/core/names/part-name.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { type AgentFunction, plainAgent } from '../../engine/capture/agent.ts'
import { mixEnvironments } from '../../engine/environments/mixed.ts'
import { openEnvironment } from '../../engine/environments/registry.ts'
import { splitEnvironments } from './environment-names.ts'
import { offered } from './offered.ts'
import { openNamed } from './open-named.ts'
import { isUserPart, loadUserPart } from './user-part.ts'

/** An environment by name, the user's own, or several of them: `a:weight=2 + b`. */
export async function openEnvironmentNamed(name: string): Promise<Environment> {
  const parts = splitEnvironments(name).map(splitWeight)
  if (parts.length === 1) return await openOne(parts[0]!.name)
  const taken = new Map<string, number>()
  const ingredients: Parameters<typeof mixEnvironments>[0][number][] = []
  for (const { name: own, weight } of parts) {
    const environment = await openOne(own)
    const count = (taken.get(environment.name) ?? 0) + 1
    taken.set(environment.name, count)
    const called = count === 1 ? environment.name : `${environment.name}-${count}`
    ingredients.push({ name: called, weight, environment })
  }
  return mixEnvironments(ingredients)
}

/** A name without its weight; `weight` is no option of any environment. */
function splitWeight(text: string): { readonly name: string; readonly weight: number } {
  const found = splitItems(text.slice(text.indexOf(':') + 1), ',').find(isWeight)
  if (found === undefined) return { name: text, weight: 1 }
  const weight = Number(found.trim().slice('weight='.length))
  if (!(weight > 0) || !Number.isFinite(weight)) {
    throw new SettingError(`--environment ${text}: ${found.trim()} is not a number above 0`)
  }
  const name = text.replace(found, '').replace(/:,/, ':').replace(/,,/, ',').replace(/[:,]$/, '')
  return { name, weight }
}

const isWeight = (item: string): boolean => /^\s*weight=/.test(item)

async function openOne(name: string): Promise<Environment> {
  if (!isUserPart(name)) {
    return await openNamed(`--environment ${name}`, () =>
      openEnvironment(name, offered().environments),
    )
  }
  const part = await loadUserPart(name)
  if (typeof part === 'function') return plainAgent(name, part as AgentFunction)
  if (typeof part === 'object' && part !== null && 'open' in part && 'readTask' in part) {
    return part as Environment
  }
  throw new SettingError(
    `--environment ${name}: this is neither an environment nor an agent; make one with environment({ … }) or agent({ … })`,
  )
}
