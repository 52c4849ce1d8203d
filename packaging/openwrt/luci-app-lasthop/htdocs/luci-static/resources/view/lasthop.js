'use strict';
'require dom';
'require form';
'require fs';
'require poll';
'require view';

/* Version of the status (`format`) that this page reads: it changes when a field is renamed or goes. */
const FORMAT = 2;
const MOST_DEVICES = 20;
const LATEST_DECISIONS = 8;

/* E() takes a bare string for HTML, and one in a list for text. Names come from devices of the home: all text goes through here. */
const text = (tag, words, style) => E(tag, { 'class': style || '' }, [ String(words) ]);

function rate(bps) {
	const unit = [ [ 1e9, 'Gbit/s' ], [ 1e6, 'Mbit/s' ], [ 1e3, 'kbit/s' ] ].find(([ size ]) => bps >= size) || [ 1, 'bit/s' ];
	return Number((bps / unit[0]).toPrecision(3)) + ' ' + unit[1];
}

const milliseconds = ms => ms == null ? '–' : Number(ms.toPrecision(2)) + ' ms';

function time(seconds) {
	const minutes = Math.floor(seconds / 60);
	if (minutes < 1)
		return _('%d s').format(seconds);
	if (minutes < 120)
		return _('%d min').format(minutes);
	return _('%d h').format(minutes / 60);
}

/* What lasthopd said, as { status } or { trouble }. */
function read(said) {
	let status;
	try {
		status = JSON.parse(said);
	}
	catch (error) {
		return { trouble: said.trim() || _('lasthopd does not answer: it is not running. Is it enabled below? The system log says more (logread -e lasthop).') };
	}
	if (status == null || status.format !== FORMAT)
		return { trouble: _('lasthopd speaks version %s of its status, and this page version %s: install lasthop and luci-app-lasthop of one release.')
			.format(status == null || status.format == null ? '?' : String(status.format), FORMAT) };
	return { status };
}

/* Not by ubus, whose messages are too short for a busy home. */
function ask() {
	return fs.exec_direct('/usr/sbin/lasthopd', [ 'status', '--json' ], 'text', false, true)
		.then(said => read(said || ''), error => ({ trouble: String(error.message || error) }));
}

const WAITS_IN = {
	'access-point': _('in the access point’s own queue'),
	'firmware': _('behind it, in driver or radio'),
	'wan': _('in front of the home')
};

function direction(of) {
	const parts = [ of.capacity_bps ? _('%s of %s').format(rate(of.rate_bps), rate(of.capacity_bps)) : rate(of.rate_bps) ];
	if (of.queue_place)
		parts.push(_('%s wait %s').format(milliseconds(of.queue_ms), WAITS_IN[of.queue_place] || of.queue_place));
	parts.push(of.limits ? _('windows are lowered') : _('nothing is held back'));
	return parts.join('; ');
}

/* What somebody should know or do. */
function remarks(status) {
	const found = status.waits ? status.waits.slice() : [];
	if (status.dry_run)
		found.push(_('It only tries (dry_run): it decides and shows, and changes nothing.'));
	if (status.paused && status.paused.length)
		found.push(_('Control is paused in part (lasthopd resume).'));
	if (status.bypass && status.bypass.bypasses_control)
		found.push(_('%d %% of the traffic goes past control: hardware flow offload is on. It is switched off under Network, Firewall.').format(Math.round(status.bypass.share * 100)));
	if (status.table && status.table.full_s != null)
		found.push(_('The table of connections is full: newer ones pass uncontrolled. Set `flows` higher than %d.').format(status.table.bound));
	return found;
}

const row = cells => E('tr', { 'class': 'tr' }, cells.map(cell => text('td', cell, 'td left')));

function table(titles, rows) {
	const head = titles.length ? [ E('tr', { 'class': 'tr table-titles' }, titles.map(title => text('th', title, 'th'))) ] : [];
	return E('table', { 'class': 'table' }, head.concat(rows.map(row)));
}

function device(of) {
	const isAddress = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(of.id);
	const waits = [ of.down_waiting_ms, of.up_waiting_ms ].map(milliseconds);
	return [ of.name || (isAddress ? '..' + of.id.slice(9) : of.id), rate(of.down_bps), rate(of.up_bps), waits[0], waits[1] ];
}

/* The elements that show it. */
function draw({ status, trouble }) {
	if (trouble)
		return [ text('p', trouble, 'alert-message warning') ];
	const interfaces = (status.interfaces || []).filter(of => of.role == 'lan').map(of => '%s (%s)'.format(of.name, of.state));
	const devices = status.devices || [];
	const decisions = (status.decisions || []).slice(-LATEST_DECISIONS).reverse();
	const shown = remarks(status).map(words => text('p', words, 'alert-message warning'));
	shown.push(table([], [
		[ _('Controller'), _('version %s, for %s').format(status.version, time(status.running_s)) ],
		[ _('Interfaces'), interfaces.join(', ') || _('none yet') ],
		[ _('Downloads'), direction(status.directions.down) ],
		[ _('Uploads'), direction(status.directions.up) ]
	]));
	shown.push(text('h3', _('Devices')));
	shown.push(table([ _('Device'), _('Down'), _('Up'), _('Downloads wait'), _('Uploads wait') ], devices.slice(0, MOST_DEVICES).map(device)));
	if (devices.length > MOST_DEVICES)
		shown.push(text('p', _('and %d more').format(devices.length - MOST_DEVICES)));
	shown.push(text('h3', _('Lately decided')));
	shown.push(table([], decisions.map(of => [ _('%s ago').format(time(Math.max(0, status.running_s - of.at_s))), of.line ])));
	return shown;
}

return view.extend({
	load: ask,

	render: function(first) {
		const place = E('div', { 'class': 'cbi-section', 'id': 'lasthop-status' });
		const show = state => dom.content(place, draw(state));
		show(first);
		poll.add(() => ask().then(show));

		const m = new form.Map('lasthop');
		const s = m.section(form.NamedSection, 'main', 'lasthop', _('Settings'));
		let o;

		o = s.option(form.Flag, 'enabled', _('Enabled'));
		o.rmempty = false;

		o = s.option(form.Value, 'capacity', _('Capacity'), _('What the Wi-Fi carries: learn, or a rate to begin with, such as 40Mbit/s.'));
		o.placeholder = 'learn';
		o.validate = (section, value) =>
			!value || /^(learn|\d+(\.\d+)? ?([kMG]?bit\/s|%))$/.test(value) || _('learn, a rate such as 40Mbit/s, or a share of the link such as 98%');

		o = s.option(form.DynamicList, 'lan', _('Devices towards the stations'), _('auto finds them. Of a bridge (br-lan) its ports are taken.'));
		o.placeholder = 'auto';
		o.validate = (section, value) => !value || /^[^\s\/]{1,15}$/.test(value) || _('a device of the list under Network, Interfaces, Devices');

		return m.render().then(settings => E('div', {}, [ text('h2', 'Lasthop'), place, settings ]));
	}
});
