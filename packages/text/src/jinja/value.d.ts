import type { PythonFloat, PythonKey, PythonSet } from '../python/value.ts';
import { PythonTuple } from '../python/value.ts';
import type { Run } from './run.ts';
import { TemplateText } from './template-text.ts';
/** Any value a template can hold. */
export type Value = null | boolean | number | bigint | string | PythonFloat | TemplateText | PythonTuple<Value> | PythonSet | readonly Value[] | Dict | Undefined | Namespace | TemplateObject;
/** A dict of template values. Its keys are plain; `foreignKeys` knows which came from outside. */
export type Dict = Map<PythonKey, Value>;
/** A string, plain or with what is known about its characters. */
export type Text = string | TemplateText;
/** What a call passes. */
export interface Input {
    readonly positional: readonly Value[];
    readonly named: ReadonlyMap<string, Value> | undefined;
}
/** A function that templates can call; `run` is the rendering it works in. */
export type Callable = (run: Run, input: Input) => Value;
/** An object with behaviour: a macro, a loop, an iterator. */
export declare class TemplateObject {
    /** The name of its class in Python, for error messages. */
    readonly type: string;
    readonly behaviour: Behaviour;
    /** What the behaviour works on, where many objects share one behaviour. */
    readonly state: unknown;
    constructor(type: string, behaviour: Behaviour, state?: unknown);
}
/** What an object can do; its state is the last argument. A missing member means that it cannot. */
export interface Behaviour {
    readonly attribute?: (name: string, state: unknown) => Value | undefined;
    readonly call?: (run: Run, input: Input, state: unknown) => Value;
    /** Its items, if all of them are at hand. */
    readonly items?: (state: unknown) => readonly Value[];
    /** A walk that makes items as it goes. */
    readonly iterate?: (state: unknown) => Iterator<Value>;
    readonly length?: (state: unknown) => number;
    readonly item?: (index: number) => Value | undefined;
    /** So many items from the first on, `step` apart. */
    readonly slice?: (first: number, count: number, step: number) => Value;
    readonly show?: (state: unknown) => string;
}
/** Jinja's undefined value: it prints as nothing, and most other uses raise. */
export declare class Undefined {
    #private;
    readonly type = "Undefined";
    readonly error: 'UndefinedError' | 'SecurityError';
    constructor(describe: () => string, error?: Undefined['error']);
    /** All undefined values are equal. */
    equals(other: unknown): boolean;
    /** Raises, as Jinja does when an undefined value is used. */
    raise(): never;
}
/** A namespace, whose attributes a template may set. */
export declare class Namespace {
    readonly type = "Namespace";
    readonly attributes: Map<string, Value>;
    constructor(attributes: Map<string, Value>);
}
/** The undefined value of a name. */
export declare const undefinedName: (name: string) => Undefined;
/** The undefined value of an attribute or item that an object does not have. */
export declare function undefinedMember(object: Value, name: Value): Undefined;
/** The undefined value of an attribute that the sandbox refuses. */
export declare const refusedAttribute: (object: Value, name: string) => Undefined;
/** The name of the value's class in Python. */
export declare const typeOf: (value: Value) => string;
/** Whether the value is a `str`. */
export declare const isText: (value: Value | undefined) => value is Text;
/** Whether the value is a list. */
export declare const isList: (value: Value | undefined) => value is readonly Value[];
/** The items of a list or tuple, else `undefined`. */
export declare function sequenceItems(value: Value): readonly Value[] | undefined;
/** Raises a TypeError. */
export declare function typeError(message: string): never;
/** Raises a ValueError. */
export declare function valueError(message: string): never;
