import type { Retrieval } from '../domain.ts'
import type { Tau2Task } from '../task.ts'
import { type Checkout, domainPath } from './checkout.ts'
import type { KnowledgeBase } from './knowledge.ts'

/** The rules of telecom: its main policy and how its support works. */
export function telecomPolicy(
  checkout: Checkout,
  { isWorkflow, solo }: { readonly isWorkflow: boolean; readonly solo: boolean },
): string {
  const read = (file: string): string => checkout.data(domainPath('telecom', file))
  const main = read(solo ? 'main_policy_solo.md' : 'main_policy.md')
  const workflow = solo ? 'tech_support_workflow_solo.md' : 'tech_support_workflow.md'
  const support = read(isWorkflow ? workflow : 'tech_support_manual.md')
  return `<main_policy>\n${main}\n</main_policy>\n<tech_support_policy>\n${support}\n</tech_support_policy>`
}

const TEMPLATES: Readonly<Record<Retrieval, string>> = {
  no_knowledge: 'no_knowledge',
  full_kb: 'full_kb',
  golden_retrieval: 'required_docs',
  bm25: 'classic_rag_bm25_no_grep',
  bm25_grep: 'classic_rag_bm25',
  grep_only: 'grep_only',
}

/** The rules of banking, with the documents where the way of retrieval puts them there. */
export function bankingPolicy(
  checkout: Checkout,
  {
    retrieval,
    knowledge,
    task,
  }: { readonly retrieval: Retrieval; readonly knowledge: KnowledgeBase; readonly task?: Tau2Task },
): string {
  const read = (file: string): string =>
    checkout.data(domainPath('banking_knowledge', `prompts/${file}.md`))
  const template = read(TEMPLATES[retrieval]).replace(
    /\{\{component:(\w+)\}\}/g,
    (_, name: string) => read(`components/${name}`),
  )
  if (retrieval === 'full_kb')
    return template.replaceAll('{{full_knowledge_base}}', () => unescaped(allDocuments(knowledge)))
  if (retrieval !== 'golden_retrieval') return template
  return template.replaceAll('{{required_documents}}', () =>
    documentsOf(knowledge, task?.requiredDocuments ?? []),
  )
}

/** The original puts the documents in as the replacement of a pattern, which reads backslashes. */
const unescaped = (text: string): string =>
  text.replace(/\\([\\nt])/g, (_, letter: string) =>
    letter === 'n' ? '\n' : letter === 't' ? '\t' : letter,
  )

const allDocuments = ({ documents }: KnowledgeBase): string =>
  [...documents.values()]
    .map(({ title, content }) => `## ${title}\n\n${content}`)
    .join('\n\n---\n\n')

function documentsOf({ documents }: KnowledgeBase, names: readonly string[]): string {
  const all = [...documents.values()]
  const found = names.map(
    name => all.findLast(({ title }) => title === name) ?? documents.get(name),
  )
  const texts = found
    .filter(document => document !== undefined)
    .map(({ title, content }) => `## ${title}\n\n${content}`)
  return texts.length === 0 ? '(No documents provided)' : texts.join('\n\n---\n\n')
}
