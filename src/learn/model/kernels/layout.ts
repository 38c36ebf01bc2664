// Where things lie in the shared memory: read by the kernels (AssemblyScript) and by the engine
// (TypeScript), so this file holds nothing but numbers that mean the same in both.

/** Tokens per block of the key-value cache. */
export const BLOCK = 16

/** Lanes over which a step's gradient is summed, whatever the number of threads. */
export const LANES = 8

/** Parameters per partial sum of the gradient's norm. */
export const NORM_BLOCK = 4096

// The control words of the job queue (byte addresses).
export const QUEUE = 1024
export const BELL = 1032
export const DONE = 1036
export const QUIT = 1040
export const FAULT = 1044
export const JOB_LIST = 2048
export const JOB_LIMIT = 4096

/** The plan: the model's shape and where its arrays lie (byte address). */
export const PLAN = 1152

// Words of the plan, as byte offsets. Parameter and panel offsets are in bytes too.
export const WIDTH = 0
export const LAYERS = 4
export const HEADS = 8
export const HIDDEN = 12
export const VOCABULARY = 16
export const PADDED_VOCABULARY = 20
export const CONTEXT = 24
export const PARAMETERS = 28
export const PARAMETER_BYTES = 32
export const LAYER_PARAMETERS = 36
export const LAYER_PARAMETER_STRIDE = 40
export const NORM_1 = 44
export const QKV = 48
export const OUT = 52
export const NORM_2 = 56
export const GATE_UP = 60
export const DOWN = 64
export const FINAL_NORM = 68
export const PANELS = 72
export const LAYER_PANELS = 76
export const LAYER_PANEL_STRIDE = 80
export const HEAD_PANELS = 84
export const EMBEDDING_PANELS = 88
export const QKV_PANELS = 92
export const OUT_PANELS = 96
export const GATE_UP_PANELS = 100
export const DOWN_PANELS = 104
export const QKV_TURNED = 108
export const OUT_TURNED = 112
export const GATE_UP_TURNED = 116
export const DOWN_TURNED = 120
export const COSINES = 124
export const SINES = 128
export const SCRATCH = 132
export const SCRATCH_BYTES = 136
export const LANE_GRADIENTS = 140
export const GRADIENT = 144
export const MOMENT_1 = 148
export const MOMENT_2 = 152
export const NORM_SUMS = 156

// Kinds of job, the first word of each.
export const JOB_FORWARD = 1
export const JOB_BACKWARD = 2
export const JOB_REDUCE = 3
export const JOB_NORM = 4
export const JOB_UPDATE = 5
export const JOB_PACK = 6

// Words of a forward or backward job, as byte offsets.
export const JOB_TOKENS = 4
export const JOB_IDS = 8
export const JOB_SPANS = 12
export const JOB_SPAN_LIST = 16
export const JOB_ROWS = 20
export const JOB_ROW_LIST = 24
/** Where the activations lie; 0 for the thread's own scratch. */
export const JOB_ACTIVATIONS = 28
/** Where block offsets count from; 0 when spans are whole rows, which need no blocks. */
export const JOB_BLOCKS = 32
/** Where logits go; 0 for a place behind the activations. */
export const JOB_LOGITS = 36
/** 1 when every layer's activations are kept for the backward pass. */
export const JOB_RETAIN = 40
/** Where a backward job adds its gradient. */
export const JOB_LANE = 44
/** 1 when a backward job must run its forward pass first. */
export const JOB_RECOMPUTE = 48
/** The next job of the same lane, or 0: one thread takes the whole chain, in order. */
export const JOB_NEXT = 52
export const JOB_BYTES = 56

// Words of a span: tokens of one sequence inside a job.
export const SPAN_START = 0
export const SPAN_COUNT = 4
export const SPAN_POSITION = 8
export const SPAN_TABLE = 12
export const SPAN_BYTES = 16

// Words of a row: one token whose distribution is wanted.
export const ROW_TOKEN = 0
/** The id whose log-probability is wanted; -1 to sample one. */
export const ROW_TARGET = 4
export const ROW_INVERSE_TEMPERATURE = 8
export const ROW_GREEDY = 12
export const ROW_TOP_K = 16
export const ROW_TOP_P = 20
export const ROW_MIN_P = 24
export const ROW_ID = 28
export const ROW_RANDOM = 32
export const ROW_LOG_SUM = 40
export const ROW_MAXIMUM = 48
export const ROW_LOGPROB = 52
export const ROW_ENTROPY = 56
export const ROW_LOGPROB_GRADIENT = 60
export const ROW_ENTROPY_GRADIENT = 64
export const ROW_BYTES = 72

// Words of the jobs over parameters: a range of bytes, and for updates the numbers of AdamW.
export const RANGE_START = 4
export const RANGE_BYTES = 8
export const RANGE_LANES = 12
export const UPDATE_RATE = 16
export const UPDATE_DECAY = 20
export const UPDATE_BETA_1 = 24
export const UPDATE_BETA_2 = 28
export const UPDATE_EPSILON = 32
export const UPDATE_SCALE = 36
export const UPDATE_CORRECTION_1 = 40
export const UPDATE_CORRECTION_2 = 44
/** A pack job's layer; the number of layers stands for the embedding. */
export const PACK_LAYER = 4
