/* A stand-in for what the page of luci-app-lasthop uses of LuCI, written by hand: the loader's `require` lines, E() and dom, which take a
 * bare string for HTML and one in a list for text as LuCI's do, views, forms as far as they show fields, poll and fs. No ubus, no router:
 * `window.answer` is what lasthopd would say, and `window.calls` what it was asked. */
'use strict';

window.calls = [];
window.polls = [];
window.options = {};

String.prototype.format = function() {
	let n = 0;
	return this.replace(/%(%|s|d)/g, (whole, kind) => kind == '%' ? '%' : kind == 'd' ? Math.floor(arguments[n++]) : String(arguments[n++]));
};
window._ = words => words;

const dom = {
	append(node, children) {
		if (Array.isArray(children))
			for (const child of children) node.append(child instanceof Node ? child : document.createTextNode(`${child}`));
		else if (children instanceof Node)
			node.append(children);
		else if (children != null)
			node.innerHTML = `${children}`;
	},
	content(node, children) {
		node.textContent = '';
		dom.append(node, children);
	}
};

window.E = (tag, attributes, children) => {
	const node = document.createElement(tag);
	for (const name in attributes) node.setAttribute(name, attributes[name]);
	dom.append(node, children);
	return node;
};

const field = kind => class {
	constructor(name, title, description) {
		Object.assign(this, { kind, name, title, description });
		window.options[name] = this;
	}
	render() {
		const input = E('input', { type: kind == 'flag' ? 'checkbox' : 'text', name: this.name, placeholder: this.placeholder || '' }, []);
		return E('label', { 'class': 'cbi-value' }, [ E('b', {}, [ this.title ]), input, E('small', {}, [ this.description || '' ]) ]);
	}
};

const form = {
	Flag: field('flag'),
	Value: field('value'),
	DynamicList: field('list'),
	NamedSection: 'named',
	Map: class {
		constructor(config) { this.config = config; this.fields = []; window.map = this; }
		section(kind, name, type, title) {
			Object.assign(this, { kind, name, type, title });
			return { option: (Field, ...rest) => { const made = new Field(...rest); this.fields.push(made); return made; } };
		}
		render() {
			return Promise.resolve(E('div', { 'class': 'cbi-map' }, [ E('h3', {}, [ this.title ]), ...this.fields.map(of => of.render()) ]));
		}
	}
};

const fs = {
	exec_direct(command, parameters, kind, latin1, errors) {
		window.calls.push([ command, ...parameters ].join(' '));
		return typeof window.answer == 'string' ? Promise.resolve(window.answer) : Promise.reject(window.answer);
	}
};

const poll = { add: call => window.polls.push(call) };
const view = { extend: own => own };
const known = { dom, form, fs, poll, view };

/* Opens the page from its source, as LuCI's loader would. */
window.start = async source => {
	const names = [ ...source.matchAll(/^'require (.*)';$/gm) ].map(found => found[1]);
	for (const name of names) if (!known[name]) throw new Error('no ' + name);
	const page = new Function(...names, source)(...names.map(name => known[name]));
	document.getElementById('view').replaceChildren(await page.render(await page.load()));
};
