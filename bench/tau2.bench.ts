// tau2-bench: whole episodes per second against the original Python on the same tasks. An episode is
// a world opened in its task's state, the task's own actions through the tools, and the reward for
// it. Set TAU2_BENCH_CHECKOUT to a checkout of sierra-research/tau2-bench, and TAU2_BENCH_PYTHON to a
// Python with its packages (else the checkout's .venv, else python3); without a checkout our own tiny
// data is used and nothing is compared. Both sides are measured in seconds of processor time.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type DomainName, Tau2Domain } from '../src/worlds/tau2/domain.ts'
import { evaluate, taskWorld } from '../src/worlds/tau2/evaluate.ts'
import type { Tau2Message } from '../src/worlds/tau2/message.ts'
import { Prompts } from '../src/worlds/tau2/prompts.ts'
import { splitTasks } from '../src/worlds/tau2/splits.ts'
import type { Tau2Task } from '../src/worlds/tau2/task.ts'

const FIXTURE = 'test/fixtures/tau2-checkout'
const SECONDS = 3

/** Plays and scores the tasks with the given ids. */
const PYTHON = `
import sys, json, time, os, io, contextlib
root, domain, ids = sys.argv[1], sys.argv[2], json.load(sys.stdin)
sys.path.insert(0, os.path.join(root, "src"))
os.environ["TAU2_DATA_DIR"] = os.path.join(root, "data")
from loguru import logger
logger.remove()
from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage
from tau2.evaluator.evaluator_env import EnvironmentEvaluator
if domain == "retail": from tau2.domains.retail.environment import get_environment, get_tasks
elif domain == "airline": from tau2.domains.airline.environment import get_environment, get_tasks
elif domain == "telecom": from tau2.domains.telecom.environment import get_environment, get_tasks
else:
    from tau2.domains.banking_knowledge.environment import get_environment as full, get_tasks
    get_environment = lambda solo_mode=False: full(retrieval_variant="no_knowledge")
tasks = {task.id: task for task in get_tasks()}
def play(task):
    environment = get_environment()
    state = task.initial_state
    environment.set_state(
        initialization_data=state.initialization_data if state else None,
        initialization_actions=state.initialization_actions if state else None,
        message_history=[])
    messages = []
    for number, action in enumerate(task.evaluation_criteria.actions or []):
        call = ToolCall(id=str(number), name=action.name, arguments=action.arguments, requestor=action.requestor)
        kind = UserMessage if action.requestor == "user" else AssistantMessage
        messages.append(kind(role=action.requestor, content=None, tool_calls=[call]))
        messages.append(environment.get_response(call))
    return EnvironmentEvaluator.calculate_reward(get_environment, task, messages).reward
chosen = [tasks[name] for name in ids]
play(chosen[0])
start = time.process_time()
done = 0
for task in chosen:
    play(task)
    done += 1
    if time.process_time() - start > 30: break
print(json.dumps({"episodes": done / (time.process_time() - start), "count": done}))
`

interface Rate {
  readonly episodes: number
  readonly count: number
}

function pythonOf(root: string): string {
  const own = join(root, '.venv/bin/python')
  return process.env.TAU2_BENCH_PYTHON ?? (existsSync(own) ? own : 'python3')
}

function measurePython(root: string, name: DomainName, tasks: readonly Tau2Task[]): Rate | string {
  const input = JSON.stringify(tasks.map(({ id }) => id))
  const run = spawnSync(pythonOf(root), ['-c', PYTHON, root, name], { encoding: 'utf8', input })
  if (run.error) return `no Python: ${run.error.message}`
  if (run.status !== 0) return run.stderr.trim().split('\n').at(-1) ?? 'Python failed'
  return JSON.parse(run.stdout.trim().split('\n').at(-1) as string) as Rate
}

/** Seconds of processor time, its garbage collector's included; other processes do not count. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

async function play(domain: Tau2Domain, task: Tau2Task, prompts: Prompts): Promise<number> {
  const world = taskWorld(domain, task)
  const messages: Tau2Message[] = []
  for (const [index, action] of (task.criteria?.actions ?? []).entries()) {
    const call = {
      id: String(index),
      name: action.name,
      arguments: action.arguments,
      requestor: action.requestor,
    }
    messages.push({ role: action.requestor, content: null, tool_calls: [call] })
    messages.push({ role: 'tool', id: call.id, requestor: call.requestor, ...world.respond(call) })
  }
  const { reward } = await evaluate({
    domain,
    prompts,
    task,
    messages,
    termination: 'user_stop',
    type: 'env',
  })
  return reward
}

async function measureOurs(domain: Tau2Domain, tasks: readonly Tau2Task[]): Promise<Rate> {
  const prompts = new Prompts(domain.checkout)
  for (const task of tasks) await play(domain, task, prompts)
  const start = cpuSeconds()
  let count = 0
  while (cpuSeconds() - start < SECONDS) {
    for (const task of tasks) await play(domain, task, prompts)
    count += tasks.length
  }
  return { episodes: count / (cpuSeconds() - start), count }
}

const NAMES: readonly DomainName[] = ['airline', 'retail', 'telecom', 'banking_knowledge']

export async function bench({ json }: { json: boolean }): Promise<object> {
  const checkout = process.env.TAU2_BENCH_CHECKOUT
  if (checkout !== undefined && !existsSync(checkout)) {
    throw new Error(`TAU2_BENCH_CHECKOUT names ${checkout}, which is not there.`)
  }
  const root = checkout ?? FIXTURE
  const predecessor = process.env.TAU_BENCH_CHECKOUT
  const figures: Record<string, object> = {}
  let ours = 0
  let theirs = 0
  for (const name of checkout ? NAMES : (['retail'] as const)) {
    const domain = new Tau2Domain({
      root,
      domain: name,
      retrieval: 'no_knowledge',
      ...(predecessor && { predecessor }),
    })
    const tasks = splitTasks(domain).get('test') ?? []
    const own = await measureOurs(domain, tasks)
    const python = checkout ? measurePython(checkout, name, tasks) : 'no TAU2_BENCH_CHECKOUT'
    const ratio = typeof python === 'string' ? undefined : own.episodes / python.episodes
    if (typeof python !== 'string') {
      ours += tasks.length / own.episodes
      theirs += tasks.length / python.episodes
    }
    figures[name] = { ours: own, python, ratio }
    if (!json) print(name, own, { python, ratio })
  }
  const ratio = ours > 0 ? theirs / ours : undefined
  if (!json && ratio) console.log(`all  ratio   ${ratio.toFixed(0)}x`)
  return { data: checkout ? 'checkout' : 'fixture', ...figures, ratio }
}

function print(
  name: string,
  ours: Rate,
  { python, ratio }: { python: Rate | string; ratio: number | undefined },
): void {
  console.log(`${name}  ours    ${ours.episodes.toFixed(0)} episodes/s`)
  console.log(
    `${name}  python  ${typeof python === 'string' ? python : `${python.episodes.toFixed(1)} episodes/s`}`,
  )
  if (ratio) console.log(`${name}  ratio   ${ratio.toFixed(0)}x`)
}
