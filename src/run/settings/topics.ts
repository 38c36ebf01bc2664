import type { SettingName } from './settings.ts'

/** What settings are about, in the order in which help and pages show them. */
export const topics = [
  'Evaluation',
  'Learning',
  'What is rolled',
  'Rewards and comparison',
  'Trees and long contexts',
  'Limits of an attempt',
  'Sampling',
  'Model and server',
  'Running',
  'Watching and keeping',
] as const

/** One of the topics. */
export type Topic = (typeof topics)[number]

const topicOf: Readonly<Record<SettingName, Topic>> = {
  ...of('Evaluation', 'trials', 'k', 'successAt', 'results'),
  ...of('Learning', 'trainer', 'steps', 'tasksPerStep', 'sampleTasks', 'heldOut', 'learningRate'),
  ...of('Learning', 'loss', 'epochs', 'updates', 'entropyBonus', 'klPenalty', 'klIn', 'reference'),
  ...of('Learning', 'teacher', 'distill', 'proximal', 'importance', 'oracleBonus'),
  ...of('Learning', 'maxStaleness', 'onUpdate', 'evaluateEvery', 'evaluateStrategy'),
  ...of('Learning', 'checkpointEvery'),
  ...of('What is rolled', 'policy', 'environment', 'agent', 'seats', 'tasks', 'split', 'group'),
  ...of('Rewards and comparison', 'reward', 'judge', 'rewardSeconds', 'filters', 'advantage'),
  ...of('Rewards and comparison', 'weighting', 'overlong'),
  ...of('Trees and long contexts', 'strategy', 'branch', 'leaves', 'stepHistory', 'condense'),
  ...of('Limits of an attempt', 'maxTurns', 'maxRolloutTokens', 'maxContext', 'maxNewTokens'),
  ...of('Limits of an attempt', 'maxSeconds', 'onLength', 'onTime', 'guards'),
  ...of('Sampling', 'temperature', 'topP', 'topK', 'minP', 'topLogprobs', 'stop', 'seed'),
  ...of('Model and server', 'model', 'servedModel', 'logprobs', 'offline', 'hub', 'keyVariable'),
  ...of('Model and server', 'history', 'templateVariables', 'toolFormat', 'reasoningFormat'),
  ...of('Model and server', 'markers', 'toolInstruction', 'record'),
  ...of('Running', 'concurrency', 'adaptive', 'keep', 'overSample', 'refill', 'deadline'),
  ...of('Running', 'retries', 'budget', 'unfinished', 'threads', 'cluster'),
  ...of('Watching and keeping', 'out', 'sinks', 'sentinels', 'metrics', 'metricsPort', 'traces'),
  ...of('Watching and keeping', 'notify'),
}

/** Settings under their topics, without topics that none of them is about. */
export function byTopic(
  names: readonly SettingName[],
): readonly { readonly topic: Topic; readonly names: readonly SettingName[] }[] {
  return topics
    .map(topic => ({ topic, names: names.filter(name => topicOf[name] === topic) }))
    .filter(({ names: about }) => about.length > 0)
}

function of<Name extends SettingName>(topic: Topic, ...names: readonly Name[]) {
  return Object.fromEntries(names.map(name => [name, topic])) as Record<Name, Topic>
}
