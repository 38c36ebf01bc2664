// tau-bench: worlds opened, tool calls and whole episodes (opened, acted, rewarded) per second against the
// original Python on the same actions, its own tools interpreted, and memory for 2,000 worlds at once. Set TAU_BENCH_CHECKOUT to a checkout of
// sierra-research/tau-bench; without one our own tiny data is used and nothing is compared. Both
// sides are measured in seconds of processor time, so that a busy machine does not blur the ratio.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type DomainName, domainNames, type TauDomain } from '../src/worlds/tau/domain.ts'
import { loadTau } from '../src/worlds/tau/load.ts'
import { makeTauWorld, type TauWorld } from '../src/worlds/tau/world.ts'
import { type Interpreted, measureInterpreted } from './tau/interpreted.ts'

const FIXTURE = 'test/fixtures/tau-checkout'
const CONCURRENT = 2000
const WARM_UP = 400
const ROUNDS = 1000

/** Worlds, calls and episodes per second of processor time, and how many worlds and calls one pass over the tasks makes. */
interface Rates {
  readonly opened: number
  readonly calls: number
  readonly episodes: number
  readonly made: { readonly worlds: number; readonly calls: number }
}

/** Drives the original: every test task is opened, its own actions are done with no user, and the reward is worked out. */
const PYTHON = `
import sys, types, json, time
root, domain = sys.argv[1:3]
sys.path.insert(0, root)
stub = types.ModuleType("litellm")
stub.completion = None
stub.provider_list = []
sys.modules["litellm"] = stub
import tau_bench.envs.base as base
class Nobody:
    def reset(self, instruction=None): return "hello"
    def step(self, content): return "ok"
    def get_total_cost(self): return 0.0
base.load_user = lambda **_: Nobody()
from tau_bench.envs import get_env
env = get_env(domain, "human", "m", "test", task_index=0)
opening = calls = rewarding = 0.0
opened = called = 0
for index, task in enumerate(env.tasks):
    start = time.process_time()
    env.reset(index)
    opening += time.process_time() - start
    opened += 1
    actions = [a for a in task.actions if a.name not in env.terminate_tools]
    start = time.process_time()
    for action in actions: env.step(action)
    calls += time.process_time() - start
    called += len(actions)
    start = time.process_time()
    env.calculate_reward()
    rewarding += time.process_time() - start
episodes = opened / (opening + calls + rewarding)
print(json.dumps({"opened": opened / opening, "calls": called / calls, "episodes": episodes, "made": {"worlds": opened, "calls": called}}))
`

function measurePython(root: string, domain: DomainName): Rates | string {
  const python = process.env.ESPALIER_PYTHON ?? 'python3'
  const run = spawnSync(python, ['-c', PYTHON, root, domain], { encoding: 'utf8' })
  if (run.error) return `no python3: ${run.error.message}`
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? 'python3 failed'
  return JSON.parse(run.stdout) as Rates
}

/** Seconds of processor time, its garbage collector's included; other processes do not count. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const openAll = (domain: TauDomain): TauWorld[] =>
  (domain.tasks.test ?? []).map(task => makeTauWorld(domain, task))

function measureOurs(domain: TauDomain): Rates {
  for (let round = 0; round < WARM_UP; round++) {
    for (const world of openAll(domain)) {
      doTask(world)
      world.calculateReward()
    }
  }
  let opened = 0
  let opening = 0
  let called = 0
  let calling = 0
  let rewarding = 0
  for (let round = 0; round < ROUNDS; round++) {
    const start = cpuSeconds()
    const worlds = openAll(domain)
    const middle = cpuSeconds()
    for (const world of worlds) called += doTask(world)
    const acted = cpuSeconds()
    for (const world of worlds) world.calculateReward()
    rewarding += cpuSeconds() - acted
    calling += acted - middle
    opening += middle - start
    opened += worlds.length
  }
  return {
    opened: opened / opening,
    calls: called / calling,
    episodes: opened / (opening + calling + rewarding),
    made: { worlds: opened / ROUNDS, calls: called / ROUNDS },
  }
}

function doTask(world: TauWorld): number {
  let done = 0
  for (const action of world.task.actions) {
    if (action.name === 'transfer_to_human_agents') continue
    world.step(action)
    done++
  }
  return done
}

function measureMemory(domains: readonly TauDomain[]): { worlds: number; megabytes: number } {
  const worlds = Array.from({ length: CONCURRENT }, (_, index) => {
    const domain = domains[index % domains.length] as TauDomain
    const tasks = domain.tasks.test ?? []
    const world = makeTauWorld(domain, tasks[Math.floor(index / 2) % tasks.length] as never)
    doTask(world)
    return world
  })
  return { worlds: worlds.length, megabytes: process.memoryUsage().rss / 1e6 }
}

type Ratio = Readonly<Record<'opened' | 'calls' | 'episodes', number>>

/** How many times faster we are over everything that the tasks of the given domains make. */
function ratioOf(pairs: readonly { readonly ours: Rates; readonly python: Rates }[]): Ratio {
  const seconds = (side: 'ours' | 'python', what: keyof Ratio): number =>
    pairs.reduce((sum, { [side]: rates, python: { made } }) => {
      return sum + (what === 'calls' ? made.calls : made.worlds) / rates[what]
    }, 0)
  return {
    opened: seconds('python', 'opened') / seconds('ours', 'opened'),
    calls: seconds('python', 'calls') / seconds('ours', 'calls'),
    episodes: seconds('python', 'episodes') / seconds('ours', 'episodes'),
  }
}

export async function bench({ json }: { json: boolean }): Promise<object> {
  const checkout = process.env.TAU_BENCH_CHECKOUT
  if (checkout !== undefined && !existsSync(checkout)) {
    throw new Error(`TAU_BENCH_CHECKOUT names ${checkout}, which is not there.`)
  }
  const root = checkout ?? FIXTURE
  const loaded: TauDomain[] = []
  const figures: Record<string, object> = {}
  const pairs: { readonly ours: Rates; readonly python: Rates }[] = []
  for (const name of domainNames) {
    const domain = await loadTau({ root, domain: name })
    loaded.push(domain)
    const ours = measureOurs(domain)
    const python = checkout ? measurePython(checkout, name) : 'no TAU_BENCH_CHECKOUT'
    if (typeof python !== 'string') pairs.push({ ours, python })
    const ratio = typeof python === 'string' ? undefined : ratioOf([{ ours, python }])
    const interpreted = checkout ? measureInterpreted(checkout, domain) : undefined
    figures[name] = { ours, python, ratio, interpreted }
    if (!json) print(name, ours, { python, ratio })
    if (!json && interpreted) printInterpreted(name, interpreted)
  }
  const ratio = pairs.length > 0 ? ratioOf(pairs) : undefined
  if (!json && ratio) printRatio('both', ratio)
  const memory = measureMemory(loaded)
  if (!json)
    console.log(`memory  ${memory.worlds} worlds  ${memory.megabytes.toFixed(0)} MB resident`)
  return { data: checkout ? 'checkout' : 'fixture', ...figures, ratio, memory }
}

function print(
  name: string,
  ours: Rates,
  { python, ratio }: { python: Rates | string; ratio: Ratio | undefined },
): void {
  const line = (rates: Rates): string =>
    `${rates.opened.toFixed(0)} worlds/s  ${rates.calls.toFixed(0)} calls/s  ${rates.episodes.toFixed(0)} episodes/s`
  console.log(`${name}  ours    ${line(ours)}`)
  console.log(`${name}  python  ${typeof python === 'string' ? python : line(python)}`)
  if (ratio) printRatio(name, ratio)
}

function printInterpreted(name: string, { calls, agreed, callsPerSecond }: Interpreted): void {
  const answers = `${agreed} of ${calls} answers are those of the port`
  console.log(
    `${name}  its own tools, interpreted  ${callsPerSecond.toFixed(0)} calls/s  ${answers}`,
  )
}

function printRatio(name: string, ratio: Ratio): void {
  console.log(
    `${name}  ratio   ${ratio.opened.toFixed(0)}x  ${ratio.calls.toFixed(1)}x  ${ratio.episodes.toFixed(0)}x`,
  )
}
