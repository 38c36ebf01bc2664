import { dumps } from '@espalier/text/python'
import { domainPath } from '../../../src/worlds/tau2/data/checkout.ts'
import {
  grepDocuments,
  type KnowledgeBase,
  searchDocuments,
} from '../../../src/worlds/tau2/data/knowledge.ts'
import {
  type DomainName,
  type Retrieval,
  retrievals,
  type Tau2Domain,
} from '../../../src/worlds/tau2/domain.ts'
import { plain } from '../../../src/worlds/tau2/program/values.ts'
import {
  advertised,
  toolSchema,
  toolsDescription,
  toolText,
} from '../../../src/worlds/tau2/schema.ts'
import { toolsOf } from '../../../src/worlds/tau2/toolkit.ts'
import { userToolNames } from '../../../src/worlds/tau2/user.ts'
import { Tau2World } from '../../../src/worlds/tau2/world.ts'
import {
  differ,
  firstOf,
  lengthOf,
  type Problem,
  sha256,
  type Tau2Row,
  type Tau2Source,
} from './source.ts'

export function checkSchema(row: Tau2Row, source: Tau2Source): Problem {
  const missing = source.lacks(row.domain)
  if (missing !== undefined) return `skipped: ${missing}`
  const isSearch = row.name === 'grep' || row.name === 'KB_search'
  const domain = source.domain(row.domain, isSearch ? 'bm25_grep' : undefined)
  if (row.unlock ?? row.give) return checkDiscovered(row, domain)
  const kit = row.side === 'user' ? domain.user : domain.agent
  const tool = kit && toolsOf(kit.class).get(row.name)?.function
  if (!tool) return `no tool ${row.name}`
  return firstOf(
    differ('schema', row.schema, dumps(plain(toolSchema(tool)))),
    differ('text', row.str_sha256, sha256(toolText(tool))),
  )
}

function checkDiscovered(row: Tau2Row, domain: Tau2Domain): Problem {
  const isUnlock = row.unlock !== undefined
  const name = isUnlock ? 'unlock_discoverable_agent_tool' : 'give_discoverable_user_tool'
  const key = isUnlock ? 'agent_tool_name' : 'discoverable_tool_name'
  const given = new Map([[key, row.unlock ?? row.give]])
  const { content } = new Tau2World(domain).respond({
    requestor: 'assistant',
    name,
    arguments: given,
  })
  return differ(name, row.content, content)
}

export function checkPrompt(row: Tau2Row, source: Tau2Source): Problem {
  const missing = source.lacks(row.domain)
  if (missing !== undefined) return `skipped: ${missing}`
  const domain = source.domain(row.domain)
  const task = source.task(row.domain, row.task)
  const tools = userToolNames(domain, task)
  const text = source.prompts.user(task.scenario, { hasTools: tools !== null })
  return firstOf(
    differ('user_tools', row.user_tools, tools),
    row.text === undefined ? undefined : differ('text', row.text, text),
    differ('length and hash', [row.len, row.sha256], [lengthOf(text), sha256(text)]),
  )
}

const POLICIES = {
  manual: ['telecom', false],
  'manual-solo': ['telecom', true],
  workflow: ['telecom-workflow', false],
  'workflow-solo': ['telecom-workflow', true],
} as const

export function checkStatic(row: Tau2Row, source: Tau2Source): Problem {
  const names = Object.keys(row.domains).filter(name => source.lacks(name) === undefined)
  return firstOf(
    ...Object.entries<Tau2Row>(row.files).map(([path, wanted]) => checkFile(path, wanted, source)),
    ...names.map(name => checkDomain(row.domains[name], source.domain(name as DomainName))),
    ...Object.entries(POLICIES).map(([name, [domain, solo]]) =>
      checkText(
        `policy ${name}`,
        row.telecom_policies[name],
        source.domain(domain).policy({ solo }),
      ),
    ),
    ...retrievals.map(name => checkRetrieval(name, row.banking_policies[name], source)),
    ...Object.entries<Tau2Row>(row.prompts).map(([name, wanted]) =>
      checkText(name, wanted, promptText(name, source)),
    ),
    ...names.map(name => {
      const text = source.prompts.agent(source.domain(name as DomainName).policy())
      return differ(`agent prompt ${name}`, row.agent_system_prompt_sha256[name], sha256(text))
    }),
    ...names.map(name => checkSplits(row.splits[name], source.domain(name as DomainName))),
  )
}

function promptText(name: string, { prompts }: Tau2Source): string {
  return name.startsWith('user ')
    ? prompts.text('tau2.user.user_simulator', name.slice(5))
    : prompts.text('tau2.agent.llm_agent', name)
}

const checkText = (what: string, wanted: Tau2Row, text: string): Problem =>
  differ(what, [wanted.len, wanted.sha256], [lengthOf(text), sha256(text)])

function checkFile(path: string, wanted: Tau2Row, source: Tau2Source): Problem {
  const inData = path.replace(/^data\//, '')
  const isTelecom =
    inData === domainPath('telecom', 'tasks.json') ||
    inData === domainPath('telecom', 'tasks_full.json')
  if (inData === path || (!isTelecom && !source.checkout.has(inData))) return undefined
  const text = isTelecom ? source.domain('telecom').tasksText() : source.checkout.data(inData)
  return differ(path, wanted, [Buffer.byteLength(text), sha256(text)])
}

function checkDomain(row: Tau2Row, domain: Tau2Domain): Problem {
  const world = new Tau2World(domain)
  const policy = domain.policy()
  const tools = (
    [
      ['assistant', domain.agent],
      ['user', domain.user],
    ] as const
  ).flatMap(([side, kit]) =>
    kit
      ? [...toolsOf(kit.class).values()].map(tool => [
          side,
          tool.name,
          tool.type,
          tool.mutates,
          tool.discoverable,
        ])
      : [],
  )
  const described = domain.user ? [['user', domain.user] as const] : []
  return firstOf(
    differ(
      `${domain.name} hashes`,
      [row.db_hash, row.user_db_hash],
      [world.hash(), world.userHash()],
    ),
    differ(
      `${domain.name} policy`,
      [row.policy_len, row.policy_sha256],
      [lengthOf(policy), sha256(policy)],
    ),
    differ(`${domain.name} tools`, row.tools, tools),
    ...[['assistant', domain.agent] as const, ...described].map(([side, kit]) =>
      differ(
        `${domain.name} ${side} description`,
        row[`tools_description_sha256_${side}`],
        sha256(toolsDescription(kit)),
      ),
    ),
  )
}

function checkRetrieval(name: Retrieval, wanted: Tau2Row, source: Tau2Source): Problem {
  const domain = source.domain('banking_knowledge', name)
  const tools = advertised(domain.agent).map(tool => tool.name)
  const [task] = domain.tasks
  const text = domain.policy({ ...(task && { task }) })
  // The order of the documents depends on the file system; their total does not.
  const policy =
    name === 'full_kb'
      ? differ('length', wanted.len, lengthOf(text))
      : checkText(`policy ${name}`, wanted, text)
  return firstOf(differ(`tools of ${name}`, wanted.tools, tools), policy)
}

function checkSplits(row: Tau2Row, domain: Tau2Domain): Problem {
  const sizes = Object.fromEntries(
    Object.entries(domain.splits).map(([name, ids]) => [name, ids.length]),
  )
  return firstOf(
    differ(`${domain.name} tasks`, row.tasks, domain.tasks.length),
    differ('splits', row.splits, sizes),
  )
}

export function checkKnowledge(row: Tau2Row, source: Tau2Source): Problem {
  const knowledge = source.domain('banking_knowledge').knowledge as KnowledgeBase
  const search = row.k === 'bm25' ? searchDocuments : grepDocuments
  const got = search(knowledge, row.q).map(([id, score]) => [id, Math.round(score * 1e4) / 1e4])
  return differ(`${row.k} ${row.q}`, byScore(row.out), byScore(got as [string, number][]))
}

/** Which documents have which score; those of the last score may be cut anywhere. */
function byScore(hits: readonly (readonly [string, number])[]): unknown {
  const last = hits.at(-1)?.[1]
  const scores = [...new Set(hits.map(([, score]) => score))]
  return scores.map(score => {
    const ids = hits.filter(hit => hit[1] === score).map(([id]) => id)
    return [score, score === last && hits.length === 10 ? ids.length : ids.sort()]
  })
}
